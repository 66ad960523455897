package mask

import (
	"slices"
	"strings"
)

// class says what a name makes of its value.
type class int

const (
	plain  class = iota // not secret
	weak                // secret if the value looks random
	strong              // secret
	header              // an authorization header: a scheme and a secret
	cookie              // a cookie header: names and secrets
)

// maxName bounds how far a name is looked for.
const maxName = 80

// classify judges a name: of a variable, an option without its dashes, a
// header or a field.
func classify(name string) class {
	parts := split(name)
	if len(parts) == 0 || len(name) > maxName {
		return plain
	}
	last := parts[len(parts)-1]
	joined := strings.Join(parts, "")
	switch joined {
	case "authorization", "proxyauthorization":
		return header
	case "cookie", "setcookie":
		return cookie
	case "auth":
		if name[0] == '_' { // of npm
			return strong
		}
		return weak
	case "pwd", "oldpwd": // the working directory
		return plain
	}
	if slices.Contains(parts, "public") || isAbout(last) || isSwitch(parts) {
		return plain
	}
	for _, s := range []string{"password", "passwd", "passphrase", "passcode", "secret", "apikey", "accesskey", "privatekey", "credential"} {
		if strings.Contains(joined, s) && !strings.Contains(joined, "passwordless") {
			return strong
		}
	}
	switch {
	case strings.HasSuffix(joined, "token"):
		return strong
	case slices.Contains([]string{"pass", "pw", "pwd", "psk"}, last):
		return strong
	case last == "key":
		return classifyKey(name, parts)
	case slices.Contains([]string{"auth", "bearer", "code", "jwt", "session", "sessionid", "sid", "sig", "signature", "hmac"}, last):
		return weak
	}
	return plain
}

// Secret reports whether the value of a variable of this name is a secret.
func Secret(name string) bool { return classify(name) == strong }

// isAbout reports whether a name ends in a word for something about a secret,
// such as the file that it is in.
func isAbout(last string) bool {
	switch last {
	case "file", "path", "dir", "stdin", "fd", "env", "name", "id", "ids", "url", "uri", "endpoint", "ttl", "type",
		"length", "len", "size", "count", "limit", "max", "min", "expiry", "expires", "expiration", "timeout",
		"policy", "prompt", "age", "hint", "version", "arn", "ref", "store", "manager", "helper", "command", "cmd":
		return true
	}
	return false
}

// isSwitch reports whether a name begins like an option without a value.
func isSwitch(parts []string) bool {
	if len(parts) < 2 {
		return false
	}
	switch parts[0] {
	case "no", "with", "without", "ask", "show", "skip", "use", "require", "print", "prompt", "list", "get", "delete":
		return true
	}
	return false
}

func classifyKey(name string, parts []string) class {
	if name == strings.ToUpper(name) {
		return strong // as variables are written
	}
	if len(parts) > 1 {
		switch parts[len(parts)-2] {
		case "api", "access", "secret", "private", "encryption", "signing", "master", "account", "shared", "auth",
			"service", "admin", "storage", "license", "app", "client", "consumer", "hmac", "aes", "session", "root":
			return strong
		}
	}
	return weak
}

// split takes a name apart at punctuation and at capitals, in lower case.
func split(name string) []string {
	var parts []string
	start := 0
	cut := func(end int) {
		if start < end {
			parts = append(parts, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := range len(name) {
		switch {
		case !isAlnum(name[i]):
			cut(i)
			start = i + 1
		case i > 0 && isUpper(name[i]) && (isLower(name[i-1]) || isUpper(name[i-1]) && i+1 < len(name) && isLower(name[i+1])):
			cut(i)
		}
	}
	cut(len(name))
	return parts
}

// isSecret reports whether a value under a name of this class is to be masked.
// literal is false where $NAME stands for something else.
func isSecret(c class, name, value string, literal bool) bool {
	switch {
	case value == "", !literal && isExpansion(value):
		return false
	case c == weak:
		return isRandom(value)
	case c != strong:
		return false
	}
	switch strings.ToLower(value) {
	case "true", "false", "null", "none", "nil", "undefined":
		return false
	}
	return !isKeyFile(name, value)
}

// isKeyFile reports whether a key is named by where it lies.
func isKeyFile(name, value string) bool {
	if !strings.HasSuffix(strings.ToLower(name), "key") {
		return false
	}
	for _, p := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(value, p) && !isRandom(value) {
			return true
		}
	}
	return strings.HasSuffix(value, ".pem") || strings.HasSuffix(value, ".key")
}

// isExpansion reports whether a value is a variable or template expression and
// nothing else.
func isExpansion(v string) bool {
	if strings.HasPrefix(v, "$(") || strings.HasPrefix(v, "`") || strings.HasPrefix(v, "${{") || strings.HasPrefix(v, "{{") || v == "$" {
		return true
	}
	name, ok := strings.CutPrefix(v, "$")
	if !ok {
		return false
	}
	if inner, ok := strings.CutPrefix(name, "{"); ok {
		if name, ok = strings.CutSuffix(inner, "}"); !ok {
			return false
		}
	}
	for i := range len(name) {
		if !isAlnum(name[i]) && name[i] != '_' {
			return false
		}
	}
	return name != "" && !isDigit(name[0])
}
