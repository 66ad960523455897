package mask

import (
	"slices"
	"strings"
)

// found is a secret in a word, by its place in the word's text.
type found struct {
	word int
	span
}

// program says which options of a program take a secret that their name does
// not give away.
type program struct {
	attached []string // options that the secret follows in the same word
	separate []string // options that it follows in the next word
	pairs    []string // options whose value is USER, pairSep, secret
	pairSep  string
	cookies  []string // options whose value is NAME=secret; …
	sub      string   // only with this word
	last     string   // the last word is a secret if this option or word is there; "*" for always
	literals bool     // --from-literal=NAME=secret
	bare     []string // words after which a secret follows
}

// programOf knows the programs by their file name.
func programOf(name string) (p program, ok bool) {
	switch name {
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlsh", "mysqlshow", "mysqlpump", "mysqlslap",
		"mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-check", "mycli", "mydumper":
		p.attached = []string{"-p"}
	case "sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "mongostat", "mongotop":
		p.attached, p.separate = []string{"-p"}, []string{"-p"}
	case "docker", "podman", "nerdctl", "buildah", "skopeo", "oras", "crane", "helm", "az", "oc", "cf":
		p.attached, p.separate, p.sub = []string{"-p"}, []string{"-p"}, "login"
		p.literals = name == "oc"
	case "kubectl":
		p.literals = true
	case "curl":
		p.pairs, p.pairSep = []string{"-u", "-U", "--user", "--proxy-user"}, ":"
		p.separate = []string{"--oauth2-bearer"}
		p.cookies = []string{"-b", "--cookie"}
	case "http", "https", "xh":
		p.pairs, p.pairSep = []string{"-a", "--auth"}, ":"
	case "smbclient", "smbget", "rpcclient", "smbmap":
		p.pairs, p.pairSep = []string{"-U", "--user"}, "%"
	case "lftp":
		p.pairs, p.pairSep = []string{"-u", "--user"}, ","
	case "redis-cli", "valkey-cli", "keydb-cli":
		p.separate = []string{"-a"}
	case "ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami", "ldapcompare", "ldapmodrdn":
		p.attached, p.separate = []string{"-w"}, []string{"-w", "-s", "-a"}
		if name != "ldappasswd" { // elsewhere these are scope and aliases
			p.separate = []string{"-w"}
		}
	case "zip", "unzip", "zipcloak", "ipmitool", "sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub":
		p.attached, p.separate = []string{"-P"}, []string{"-P"}
	case "7z", "7za", "7zr", "7zz":
		p.attached = []string{"-p"}
	case "rar", "unrar":
		p.attached = []string{"-p", "-hp"}
	case "snmpget", "snmpwalk", "snmpset", "snmpbulkwalk", "snmptrap":
		p.separate = []string{"-c", "-A", "-X"}
	case "rdesktop", "useradd", "usermod":
		p.separate = []string{"-p"}
	case "xfreerdp", "xfreerdp3", "wlfreerdp":
		p.attached = []string{"/p:"}
	case "openssl":
		p.separate = []string{"-k", "-K"}
	case "gh":
		p.separate, p.sub = []string{"-b", "--body"}, "secret"
	case "htpasswd":
		p.last = "-b"
	case "wpa_passphrase":
		p.last = "*"
	case "rabbitmqctl":
		p.last = "add_user"
	case "ssh", "scp", "sftp", "rsync": // end what sshpass begins
	case "nmcli":
		p.bare = []string{"password"}
	default:
		return p, false
	}
	return p, true
}

// findInWords finds secrets in the words of one command.
func findInWords(words []word) []found {
	var out []found
	// Programs run others: the last known name counts, and what came before it
	// can still ask for a subcommand.
	var prog program
	progAt, inScope, settings := 0, false, false
	for i, w := range words {
		if p, ok := programOf(base(w.text)); ok {
			prog, progAt, inScope = p, i, p.sub == ""
		}
		if w.text != "" && w.text == prog.sub {
			inScope = true
		}
		if p, ok := assignment(words, i); ok {
			out = append(out, found{i, p})
		}
		if takesSecret(words, i, settings) {
			out = append(out, found{i + 1, whole(words[i+1])})
		}
		settings = settings || w.text == "set" || w.text == "config"
		if inScope {
			out = append(out, prog.find(words, i)...)
		}
	}
	if prog.last != "" && len(words) > progAt+2 && prog.lastIsSecret(words[progAt:]) {
		out = append(out, found{len(words) - 1, whole(words[len(words)-1])})
	}
	return out
}

func whole(w word) span { return span{0, len(w.text)} }

// find finds what the word at i and the next one hold by the program's rules.
func (p program) find(words []word, i int) []found {
	w := words[i].text
	for _, opt := range p.attached {
		if strings.HasPrefix(w, opt) && len(w) > len(opt) && !isExpansion(w[len(opt):]) {
			return []found{{i, span{len(opt), len(w)}}}
		}
	}
	for _, opt := range p.pairs {
		if v, ok := strings.CutPrefix(w, opt); ok && v != "" && (len(opt) == 2 || v[0] == '=') {
			if at := strings.Index(w, p.pairSep); at > 0 {
				return []found{{i, span{at + 1, len(w)}}}
			}
		}
	}
	if p.literals {
		if v, ok := strings.CutPrefix(w, "--from-literal="); ok && strings.Contains(v, "=") {
			return []found{{i, span{len(w) - len(v) + strings.IndexByte(v, '=') + 1, len(w)}}}
		}
	}
	if i+1 == len(words) {
		return nil
	}
	next := words[i+1]
	switch {
	case isExpansion(next.text) && !next.literal:
	case slices.Contains(p.separate, w), slices.Contains(p.bare, w):
		return []found{{i + 1, whole(next)}}
	case p.takesPair(w):
		if at := strings.Index(next.text, p.pairSep); at >= 0 && !isExpansion(next.text[at+1:]) {
			return []found{{i + 1, span{at + 1, len(next.text)}}}
		}
	case slices.Contains(p.cookies, w):
		var out []found
		for _, c := range cookieSpans(next.text, 0) {
			out = append(out, found{i + 1, c})
		}
		return out
	case p.literals && w == "--from-literal":
		if at := strings.IndexByte(next.text, '='); at >= 0 {
			return []found{{i + 1, span{at + 1, len(next.text)}}}
		}
	}
	return nil
}

// takesPair reports whether w is an option whose value is a user and a secret,
// alone or at the end of a cluster such as -su.
func (p program) takesPair(w string) bool {
	for _, opt := range p.pairs {
		if w == opt || len(opt) == 2 && isCluster(w) && w[len(w)-1] == opt[1] {
			return true
		}
	}
	return false
}

// lastIsSecret looks for what makes the last word a secret.
func (p program) lastIsSecret(words []word) bool {
	if p.last == "*" {
		return true
	}
	for _, w := range words[1 : len(words)-1] {
		if w.text == p.last || p.last[0] == '-' && isCluster(w.text) && strings.Contains(w.text, p.last[1:]) {
			return true
		}
	}
	return false
}

// assignment finds the value in NAME=value, --name=value and "Name: value".
func assignment(words []word, i int) (span, bool) {
	w := words[i]
	from := 0
	for from < len(w.text) && (isAlnum(w.text[from]) || strings.IndexByte("_-.", w.text[from]) >= 0) {
		from++
	}
	if from == len(w.text) || w.text[from] != '=' && (w.text[from] != ':' || !isOption(words, i-1, "-H", "--header")) {
		return span{}, false
	}
	name := strings.TrimLeft(w.text[:from], "-")
	for from++; from < len(w.text) && w.text[from] == ' '; {
		from++
	}
	to := len(w.text)
	if strings.ContainsFunc(w.text[from:], func(r rune) bool { return r < 0x80 && isSpace(byte(r)) }) && !isOneValue(words, i) {
		to = bareEnd(w.text, from, false)
	}
	to = from + endOfPair(w.text[from:to])
	return span{from, to}, isSecret(classify(name), name, w.text[from:to], w.literal)
}

// isOneValue reports whether all that follows the '=' of a word with blanks is
// one value, and not a command line that begins with an assignment.
func isOneValue(words []word, i int) bool {
	w := words[i]
	switch {
	case w.assigned:
		return true
	case strings.HasPrefix(w.text, "-"):
		return !strings.ContainsAny(w.text, ";|&<>`\n") && !strings.Contains(w.text, "$(")
	case i == 0:
		return false
	}
	prev := words[i-1].text
	name, _, isAssignment := strings.Cut(prev, "=")
	switch {
	case isAssignment && name != "" && !strings.ContainsAny(name, " \t\n"):
		return true
	case isOption(words, i-1, "--env", "--build-arg", "--set", "--set-string", "-H", "--header"):
		return true
	}
	switch base(prev) {
	case "env", "export", "declare", "local", "readonly":
		return true
	case "-e":
		switch base(words[0].text) {
		case "docker", "podman", "nerdctl":
			return true
		}
	}
	return false
}

func isOption(words []word, i int, options ...string) bool {
	return i >= 0 && slices.Contains(options, words[i].text)
}

// endOfPair is where a value ends if further pairs follow it: a=1&b=2.
func endOfPair(v string) int {
	for i := range len(v) {
		if strings.IndexByte("&,;", v[i]) >= 0 && startsPair(v[i+1:]) {
			return i
		}
	}
	return len(v)
}

// takesSecret reports whether the word at i is an option, or a setting's name,
// and the next word its secret value. settings is true behind "set" or "config".
func takesSecret(words []word, i int, settings bool) bool {
	w := words[i].text
	if i+1 == len(words) || len(w) > maxName {
		return false
	}
	next := words[i+1]
	if isSwitchWord(next.text) {
		return false
	}
	name := strings.TrimLeft(w, "-")
	dashes := len(w) - len(name)
	for j := range len(name) {
		if !isAlnum(name[j]) && strings.IndexByte("_-./:", name[j]) < 0 {
			return false
		}
	}
	switch {
	case dashes > 2 || name == "":
		return false
	case dashes > 0:
		return isSecret(classify(name), name, next.text, next.literal)
	}
	// aws configure set aws_secret_access_key …, npm config set //host/:_authToken …
	if !settings || !strings.ContainsAny(name, "_:.") {
		return false
	}
	name = name[strings.LastIndexAny(name, "/:")+1:]
	return name != "" && isSecret(classify(name), name, next.text, next.literal)
}

// isSwitchWord reports whether a word is an option rather than a value: a
// letter or a long name after its dashes.
func isSwitchWord(w string) bool {
	if long, ok := strings.CutPrefix(w, "--"); ok {
		return long == "" || isLetter(long[0])
	}
	return len(w) == 2 && w[0] == '-'
}
