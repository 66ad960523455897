package trap

import (
	"unicode"
	"unicode/utf8"
)

// words is a set of words and operators that play a part in traps.
type words uint32

// The first seven serve text.go, the others tell whether the parsed line is
// worth walking.
const (
	wordPython  words = 1 << iota // python, python.exe
	wordPython3                   // python3, python3.exe
	wordPkill                     // pkill
	wordBash                      // bash, bash.exe
	wordCmd                       // cmd, cmd.exe
	wordWindows                   // powershell, pwsh
	wordLinux                     // wsl, ssh, docker, podman, kubectl: what follows runs under Linux

	wordTrigger  // a word that is enough for a walk
	wordInPlace  // sed, perl
	opInPlace    // an option with i
	wordFind     // find
	opFind       // one of find's actions, -o, or a pattern test
	wordGit      // git
	wordGitVerb  // clean, push
	wordShell    // sh, bash and the like, eval, python
	wordFetch    // curl, wget
	wordLister   // find, ls
	wordCopy     // cp, mv
	wordPipeLast // tee, tail, head, cat
	wordTest     // test
	opStar       // *
	opAnd        // && or ||, or then
	opPipe       // |
	opHeredoc    // <<
	opWrite      // > onto a file
	opAssign     // = behind a name
	opDollar     // $ or `
)

const textWords = wordPython | wordPython3 | wordPkill | wordBash

// scan finds the words and operators of a text in one pass.
func scan(text string) words {
	var seen words
	for r := (runs{text: text, ops: &seen}); r.next(); {
		seen |= r.word()
	}
	return seen
}

// worthWalking tells whether the words can make up a trap of the parsed line.
func worthWalking(w words) bool {
	both := func(set words) bool { return w&set == set }
	return w&(wordTrigger|wordPkill|opWrite|opHeredoc) != 0 ||
		both(wordInPlace|opInPlace) ||
		both(wordFind|opFind) ||
		both(wordGit|wordGitVerb) ||
		both(wordPipeLast|opPipe|opAnd) ||
		both(wordPipeLast|opPipe|opDollar) ||
		both(wordCopy|opStar) ||
		both(opAssign|opDollar) ||
		both(wordTest|opDollar) ||
		w&wordLister != 0 && w&(opDollar|opPipe) != 0 ||
		w&wordFetch != 0 && w&(opDollar|opPipe) != 0 ||
		w&(wordWindows|wordCmd) != 0 && w&(wordPython|wordPython3) != 0 ||
		w&(wordShell|wordBash) != 0 && w&(opInPlace|opDollar) != 0
}

// runs iterates over the maximal sequences of letters, digits, "_", "." and
// "-": the words that no other word continues.
type runs struct {
	text       string
	start, end int    // the run
	newline    bool   // a line end stands between the run before and this one
	ops        *words // where operators are noted, or nil
}

func (r *runs) next() bool {
	text, i := r.text, r.end
	r.newline = false
	for i < len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			size, letter := decode(text[i:])
			if letter {
				break
			}
			i += size
			continue
		}
		if inRun(c) {
			break
		}
		if c == '\n' {
			r.newline = true
		} else if r.ops != nil && c != ' ' {
			*r.ops |= operator(text, i)
		}
		i++
	}
	r.start = i
	for i < len(text) {
		if c := text[i]; c >= utf8.RuneSelf {
			size, letter := decode(text[i:])
			if !letter {
				break
			}
			i += size
		} else if inRun(c) {
			i++
		} else {
			break
		}
	}
	r.end = i
	return r.start < r.end
}

// inRun tells whether an ASCII character belongs to a run.
func inRun(c byte) bool {
	l := c | 0x20
	return 'a' <= l && l <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_'
}

func decode(s string) (size int, letter bool) {
	c, size := utf8.DecodeRuneInString(s)
	return size, c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c))
}

// before is the character in front of the run, 0 where there is none.
func (r *runs) before() byte {
	if r.start == 0 {
		return 0
	}
	return r.text[r.start-1]
}

// operator tells which operator begins at text[i].
func operator(text string, i int) words {
	var following byte
	if i+1 < len(text) {
		following = text[i+1]
	}
	switch c := text[i]; c {
	case '*', '?':
		return opStar
	case '$', '`':
		return opDollar
	case '=':
		// x = 5, x =5, x= 5
		before := i > 0 && text[i-1] == ' '
		if before && following != '=' || following == ' ' && !before {
			return wordTrigger
		}
		return opAssign
	case '{':
		if following == '$' || '0' <= following && following <= '9' {
			return wordTrigger
		}
	case '[':
		if following == ' ' && (i == 0 || !inRun(text[i-1])) && (i == 0 || text[i-1] != '[') {
			return wordTrigger
		}
	case '&':
		if following == '&' {
			return opAnd
		}
		if following == '>' {
			return opWrite
		}
	case '|':
		if following == '|' {
			return opAnd
		}
		return opPipe
	case '<':
		if following == '<' {
			return opHeredoc
		}
		if following == '(' {
			return opDollar
		}
	case '>':
		if following == '&' {
			return 0
		}
		return opWrite
	}
	return 0
}

// longestWord is the length of the longest word that classify knows.
const longestWord = 14

// word tells what the run is. The name of a directory is no word.
func (r *runs) word() words {
	text, start, end := r.text, r.start, r.end
	for end > start && text[end-1] == '.' {
		end-- // the end of a sentence
	}
	if end-start > longestWord || end == start {
		return 0
	}
	if text[start] == '-' {
		return option(text[start:end])
	}
	var lower [longestWord]byte
	for i := start; i < end; i++ {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i-start] = c
	}
	word := classify(string(lower[:end-start]))
	switch {
	case word == 0:
	case word&wordPkill != 0 && text[start:end] != "pkill":
		return 0
	case word&wordCmd == 0 && r.end < len(text) && text[r.end] == '/':
		return 0
	}
	return word
}

// classify knows the words, in lower case.
func classify(word string) words {
	switch word {
	case "python", "python.exe":
		return wordPython | wordShell
	case "python3", "python3.exe":
		return wordPython3 | wordShell
	case "pkill":
		return wordPkill
	case "bash", "bash.exe":
		return wordBash
	case "cmd", "cmd.exe":
		return wordCmd
	case "powershell", "powershell.exe", "pwsh", "pwsh.exe":
		return wordWindows
	case "ssh", "docker", "podman":
		return wordLinux | wordTrigger
	case "ssh.exe", "docker.exe", "podman.exe", "kubectl", "kubectl.exe", "wsl", "wsl.exe":
		return wordLinux
	case "rm", "killall", "kill", "chmod", "chown", "chgrp", "xargs", "sudo", "doas", "crontab", "ln", "tar",
		"local", "declare", "readonly", "export", "typeset", "read", "su", "for", "eval", "docker-compose", "podman-compose":
		return wordTrigger
	case "sed", "perl":
		return wordInPlace
	case "find":
		return wordFind | wordLister
	case "ls":
		return wordLister
	case "git":
		return wordGit
	case "clean", "push":
		return wordGitVerb
	case "sh", "zsh", "dash", "ksh", "source":
		return wordShell
	case "curl", "wget":
		return wordFetch
	case "cp", "mv":
		return wordCopy
	case "tee":
		return wordPipeLast | wordTrigger
	case "tail", "head", "cat":
		return wordPipeLast
	case "then", "set", "while", "until":
		return opAnd
	case "test":
		return wordTest
	}
	return 0
}

// option knows the options, among them every short one with an i or a c.
func option(word string) words {
	switch word {
	case "-delete", "-exec", "-execdir", "-o", "-or", "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname", "-regex", "-iregex":
		return opFind
	}
	for i := 1; i < len(word); i++ {
		if c := word[i]; c == 'i' || c == 'c' {
			return opInPlace
		}
	}
	return 0
}
