package trap

// The keys of the traps.
const (
	keyPythonIsolated = "python-I"
	keyPkillFull      = "pkill-f"
	keyPython3        = "python3"
	keyBash           = "bash"

	keyRmEmptyVariable  = "rm-empty-variable"
	keyRmSpace          = "rm-space"
	keyCdRm             = "cd-before-rm"
	keyReadWrite        = "read-write-same-file"
	keyRedirectOrder    = "redirect-order"
	keyTestRedirect     = "test-redirect"
	keyTestUnquoted     = "test-unquoted"
	keySedInPlace       = "sed-i-portable"
	keyPerlInPlace      = "perl-i-suffix"
	keyFindDelete       = "find-delete-first"
	keyFindOr           = "find-or-precedence"
	keyFindUnquoted     = "find-unquoted-glob"
	keyXargs            = "xargs-whitespace"
	keyForLs            = "for-in-ls"
	keyBraceVariable    = "brace-variable"
	keySSHLocal         = "ssh-glob"
	keySSHCd            = "ssh-cd-local"
	keySSHStdin         = "ssh-eats-stdin"
	keyGitClean         = "git-clean-ignored"
	keyGitForce         = "git-force-main"
	keyCurlPipe         = "curl-pipe-shell"
	keySudoRedirect     = "sudo-redirect"
	keySudoCd           = "sudo-cd"
	keySudoNpm          = "sudo-npm"
	keyKillPattern      = "kill-9-pattern"
	keyChmodAll         = "chmod-777"
	keyChmodFiles       = "chmod-recursive-files"
	keyDotGlob          = "dotdot-glob"
	keyHeredoc          = "heredoc-expands"
	keyPythonPipe       = "python-pipe-encoding"
	keyPipeExit         = "pipe-exit-code"
	keyDeclareHidesExit = "declare-hides-exit"
	keyLoopVariable     = "pipe-loop-variable"
	keyPrefixAssign     = "prefix-assign"
	keyAssignSpelled    = "assign-spelled"
	keyShellWords       = "sh-c-words"
	keyGlobTarget       = "glob-target"
	keyTarFile          = "tar-f-last"
	keyLnRelative       = "ln-relative"
	keyCrontabRemove    = "crontab-r"
	keyCrontabReplace   = "crontab-replace"
	keyDockerVolumes    = "docker-volumes"
)

// kind is one trap: its key, where it is documented, and its texts.
type kind struct {
	key, source     string
	english, german string
}

// kinds are all traps, in the order of Keys.
var kinds = [...]kind{
	{
		keyPythonIsolated, "Python documentation, Command line and environment, -I and -X utf8",
		"python -I ignores PYTHONIOENCODING and PYTHONUTF8, so that output on Windows may be in the ANSI code page and special characters break. Write python -I -X utf8.",
		"python -I übergeht PYTHONIOENCODING und PYTHONUTF8; unter Windows kommt die Ausgabe dann womöglich in der ANSI-Codepage, und Umlaute gehen kaputt. Besser: python -I -X utf8.",
	},
	{
		keyPkillFull, "pkill(1), procps-ng, -f, --full",
		"pkill -f looks at whole command lines, so it also ends the shell whose command holds the pattern, and everything else that mentions it. Look with pgrep -af first, then end the process by its number, or use pkill -x NAME.",
		"pkill -f vergleicht ganze Befehlszeilen und trifft so auch die eigene Shell, in deren Befehl das Muster steht, und alles andere, das es erwähnt. Erst mit pgrep -af nachsehen, dann den Prozess über seine Nummer beenden, oder pkill -x NAME nehmen.",
	},
	{
		keyPython3, "Python documentation, Using Python on Windows",
		"On Windows python3 is often only a placeholder that opens the Microsoft Store. Use python there; on Linux and macOS python3 is right.",
		"Unter Windows ist python3 oft nur ein Platzhalter, der den Microsoft Store öffnet. Dort python nehmen; unter Linux und macOS ist python3 richtig.",
	},
	{
		keyBash, "Microsoft documentation, WSL, Basic commands; CreateProcessW, search order of lpCommandLine",
		"Windows looks in System32 first, so that bash without a path starts the one of WSL, or fails where WSL has no distribution. Give the path of the bash you mean, such as C:/Program Files/Git/bin/bash.exe.",
		"Windows sucht zuerst in System32; bash ohne Pfad startet deshalb das von WSL oder scheitert, wo WSL keine Distribution hat. Den Pfad der gemeinten bash angeben, etwa C:/Program Files/Git/bin/bash.exe.",
	},
	{
		keyRmEmptyVariable, "bash(1), Parameter Expansion, ${parameter:?word}; POSIX.1-2024, XCU 2.6.2",
		`If the variable is empty or unset, what is left is /, your home or a directory of the system, and that is deleted. Write "${NAME:?}"/… so that the shell stops instead.`,
		`Ist die Variable leer oder nicht gesetzt, bleibt /, das Heimverzeichnis oder ein Verzeichnis des Systems übrig, und das wird gelöscht. Mit "${NAME:?}"/… bricht die Shell stattdessen ab.`,
	},
	{
		keyRmSpace, "POSIX.1-2024, XCU 2.3, Token Recognition; rm(1)",
		"The space makes two arguments of one path, so rm also deletes what stands in front of it or behind it. Remove the space, or put the path in quotes.",
		"Das Leerzeichen macht aus einem Pfad zwei Argumente, und rm löscht auch, was davor oder dahinter steht. Das Leerzeichen entfernen oder den Pfad in Anführungszeichen setzen.",
	},
	{
		keyCdRm, "POSIX.1-2024, XCU cd, Exit Status; bash(1), set -e",
		"If cd fails, the next commands still run and delete in the directory where you already were. Write cd DIR && rm …, or give the full path.",
		"Scheitert cd, laufen die nächsten Befehle trotzdem und löschen im bisherigen Verzeichnis. Besser cd VERZEICHNIS && rm … oder den ganzen Pfad angeben.",
	},
	{
		keyReadWrite, "Bash Reference Manual 3.6, Redirections; cat(1)",
		"The target is emptied, or grows, while or before the same line reads it, so its content can be lost. Write to another file and mv it over, or use sponge or the program's own option such as sort -o.",
		"Die Zieldatei wird geleert oder wächst, bevor oder während dieselbe Zeile sie liest; ihr Inhalt kann verloren gehen. In eine andere Datei schreiben und mit mv ersetzen, oder sponge oder die eigene Option des Programms wie sort -o nehmen.",
	},
	{
		keyRedirectOrder, "Bash Reference Manual 3.6, Redirections",
		"Redirections work from left to right: here errors go where the output went before, and only the output goes to the file. Write > FILE 2>&1 to have both in the file.",
		"Umleitungen gelten von links nach rechts: Fehler gehen hier dorthin, wo die Ausgabe vorher hinging, und nur die Ausgabe landet in der Datei. Mit > DATEI 2>&1 kommt beides hinein.",
	},
	{
		keyTestRedirect, "POSIX.1-2024, XCU test, Application Usage",
		"Inside [ ] the signs > and < are redirections: > creates or empties a file, and nothing is compared. Use -gt and -lt for numbers, or [[ ]] for strings.",
		"In [ ] sind > und < Umleitungen: > legt eine Datei an oder leert sie, und verglichen wird nichts. Für Zahlen -gt und -lt nehmen, für Zeichenketten [[ ]].",
	},
	{
		keyTestUnquoted, "Bash Reference Manual 3.5.7, Word Splitting; POSIX.1-2024, XCU test",
		`If the variable is empty or holds a space, [ gets other arguments than meant: it fails, or [ -n ] is always true. Quote it: "$NAME".`,
		`Ist die Variable leer oder enthält sie ein Leerzeichen, bekommt [ andere Argumente als gemeint: Es scheitert, oder [ -n ] ist immer wahr. In Anführungszeichen setzen: "$NAME".`,
	},
	{
		keySedInPlace, "sed(1), GNU sed, -i[SUFFIX]; sed(1), FreeBSD, -i extension",
		"GNU sed takes a suffix only right behind -i: it reads '' as the script, and in -ie the e is the suffix. macOS needs -i ''. Write sed -i.bak -e … FILE, which works in both.",
		"GNU sed nimmt ein Suffix nur direkt hinter -i: Ein '' liest es als Skript, und bei -ie ist das e das Suffix. macOS braucht -i ''. Mit sed -i.bak -e … DATEI geht beides.",
	},
	{
		keyPerlInPlace, "perlrun(1), -i[extension]",
		"What follows -i directly is the suffix of the backup, so in -pie the e is no option and the script is missing. Write perl -i -pe ….",
		"Was direkt hinter -i steht, ist das Suffix der Sicherung; bei -pie ist das e also keine Option, und das Skript fehlt. Besser perl -i -pe ….",
	},
	{
		keyFindDelete, "find(1), -delete",
		"find evaluates from left to right: -delete or rm in front of the tests, or -delete without any start or test, takes everything below the start. Put it last, and try with -print first.",
		"find wertet von links nach rechts aus: -delete oder rm vor den Prüfungen oder -delete ganz ohne Startpunkt und Prüfung nimmt alles unter dem Startpunkt. Ans Ende setzen und erst mit -print probieren.",
	},
	{
		keyFindOr, "find(1), OPERATORS",
		`-o binds weaker than the implied -a, so the action holds only for the last alternative. Put the alternatives in \( … \).`,
		`-o bindet schwächer als das gedachte -a; die Aktion gilt deshalb nur für die letzte Alternative. Die Alternativen in \( … \) setzen.`,
	},
	{
		keyFindUnquoted, "find(1), -name",
		"The shell replaces the pattern by matching names of the current directory before find sees it. Quote it: -name '*.txt'.",
		"Die Shell ersetzt das Muster durch passende Namen im aktuellen Verzeichnis, bevor find es sieht. In Anführungszeichen setzen: -name '*.txt'.",
	},
	{
		keyXargs, "xargs(1), -0; find(1), -print0",
		"xargs splits at spaces, line ends and quotes, so a name with one of them becomes other names. Use find … -print0 | xargs -0, or find … -exec … {} +.",
		"xargs trennt an Leerzeichen, Zeilenenden und Anführungszeichen; aus einem Namen mit solchen Zeichen werden andere Namen. Besser find … -print0 | xargs -0 oder find … -exec … {} +.",
	},
	{
		keyForLs, "Bash Reference Manual 3.5.7, Word Splitting",
		"The names are split at spaces and globbed again. Use for f in ./*, or find … -print0 with while IFS= read -r -d ''.",
		"Die Namen werden an Leerzeichen getrennt und noch einmal als Muster gelesen. Besser for f in ./* oder find … -print0 mit while IFS= read -r -d ''.",
	},
	{
		keyBraceVariable, "Bash Reference Manual 3.5.1, Brace Expansion",
		"Bash expands braces before variables, so all that comes out is the text {1..…} itself. Use for ((i = 1; i <= n; i++)) or seq.",
		"Bash löst Klammern vor Variablen auf; heraus kommt nur der Text {1..…} selbst. Besser for ((i = 1; i <= n; i++)) oder seq.",
	},
	{
		keySSHLocal, "Bash Reference Manual 3.5, Shell Expansions; ssh(1)",
		"Your own shell expands this before ssh starts, with the files and values of this machine. Put the remote command in single quotes.",
		"Die eigene Shell löst das auf, bevor ssh startet, mit den Dateien und Werten dieser Maschine. Den entfernten Befehl in einfache Anführungszeichen setzen.",
	},
	{
		keySSHCd, "Bash Reference Manual 3.2.4, Lists of Commands; ssh(1)",
		"Only cd runs on the other machine; what follows runs here. Quote the whole: ssh HOST 'cd DIR && …'.",
		"Nur cd läuft auf der anderen Maschine; was dahinter steht, läuft hier. Alles zusammen in Anführungszeichen setzen: ssh HOST 'cd VERZEICHNIS && …'.",
	},
	{
		keySSHStdin, "ssh(1), -n",
		"ssh reads the rest of the loop's input, so the loop ends after the first round. Use ssh -n, or give ssh < /dev/null.",
		"ssh liest den Rest der Eingabe der Schleife mit; sie endet nach der ersten Runde. Besser ssh -n oder ssh … < /dev/null.",
	},
	{
		keyGitClean, "git-clean(1), -x, -X",
		"-x and -X also delete ignored files, such as .env, local settings and caches, and git cannot bring them back. Look with git clean -n first, or keep some with -e PATTERN.",
		"-x und -X löschen auch ignorierte Dateien wie .env, lokale Einstellungen und Caches, und git kann sie nicht zurückholen. Erst mit git clean -n nachsehen oder einzelne mit -e MUSTER behalten.",
	},
	{
		keyGitForce, "git-push(1), --force-with-lease",
		"A forced push to the main branch discards commits that others pushed meanwhile. Use --force-with-lease, or better a branch of your own.",
		"Ein erzwungener Push auf den Hauptzweig verwirft Commits, die andere inzwischen gepusht haben. Besser --force-with-lease oder ein eigener Zweig.",
	},
	{
		keyCurlPipe, "POSIX.1-2024, XCU sh, STDIN; curl(1), -f",
		"If the download breaks off or is an error page, the part that came is run all the same, and nobody has read it. Download to a file with curl -f, read it, then run it.",
		"Bricht der Download ab oder kommt eine Fehlerseite, läuft der angekommene Teil trotzdem, und niemand hat ihn gelesen. Mit curl -f in eine Datei laden, lesen, dann ausführen.",
	},
	{
		keySudoRedirect, "sudo(8), EXAMPLES",
		"Your own shell opens the file before sudo starts, without privilege. Use … | sudo tee FILE > /dev/null, or sudo sh -c '… > FILE'.",
		"Die eigene Shell öffnet die Datei, bevor sudo startet, also ohne dessen Rechte. Besser … | sudo tee DATEI > /dev/null oder sudo sh -c '… > DATEI'.",
	},
	{
		keySudoCd, "sudo(8), EXAMPLES; POSIX.1-2024, XCU cd",
		"cd is part of the shell: sudo finds no such program, or changes the directory of a process that ends at once. Use sudo sh -c 'cd DIR && …'.",
		"cd gehört zur Shell: sudo findet kein solches Programm oder wechselt das Verzeichnis eines Prozesses, der sofort endet. Besser sudo sh -c 'cd VERZEICHNIS && …'.",
	},
	{
		keySudoNpm, "npm documentation, Resolving EACCES permissions errors when installing packages globally",
		"Install scripts run as root, and files that belong to root stay in the project and the cache. Install without sudo, with a version manager or a prefix of your own.",
		"Installationsskripte laufen als root, und im Projekt und im Cache bleiben Dateien, die root gehören. Ohne sudo installieren, mit einem Versionsmanager oder eigenem Präfix.",
	},
	{
		keyKillPattern, "kill(1); pkill(1), procps-ng; signal(7)",
		"A pattern can match more processes than meant, and with KILL none of them can save or clean up. Look with pgrep -a first, send TERM by number, and KILL only to what stays.",
		"Ein Muster kann mehr Prozesse treffen als gemeint, und bei KILL kann keiner davon sichern oder aufräumen. Erst mit pgrep -a nachsehen, TERM an die Nummer senden und KILL nur an das, was bleibt.",
	},
	{
		keyChmodAll, "chmod(1)",
		"Everybody on the machine may then change all of it, every file becomes executable, and ssh and others refuse such files. Give the owner or a group what is needed: chmod -R u=rwX,go=rX, or chown.",
		"Alle auf der Maschine dürfen dann alles davon ändern, jede Datei wird ausführbar, und ssh und andere lehnen solche Dateien ab. Dem Eigentümer oder einer Gruppe geben, was nötig ist: chmod -R u=rwX,go=rX oder chown.",
	},
	{
		keyChmodFiles, "chmod(1), X",
		"A mode without x also goes to the directories, and then nobody can enter them. Write X for directories only: chmod -R u=rwX,go=rX.",
		"Ein Modus ohne x gilt auch für die Verzeichnisse, und dann kommt niemand mehr hinein. Mit X gilt er nur für Verzeichnisse: chmod -R u=rwX,go=rX.",
	},
	{
		keyDotGlob, "bash(1), shopt, globskipdots; POSIX.1-2024, XCU 2.14",
		".* also matches . and .. in many shells, so the command goes up into the parent directory. Use .[!.]*, or name the directory itself.",
		".* passt in vielen Shells auch auf . und .., und der Befehl geht ins übergeordnete Verzeichnis. Besser .[!.]* oder das Verzeichnis selbst nennen.",
	},
	{
		keyHeredoc, "Bash Reference Manual 3.6.6, Here Documents",
		"With an unquoted delimiter the shell expands $ and backquotes now, and the file gets the result in place of the text. Quote the delimiter: <<'EOF'.",
		"Ohne Anführungszeichen um das Endwort löst die Shell $ und Backquotes jetzt auf, und in der Datei steht das Ergebnis statt des Textes. Das Endwort in Anführungszeichen setzen: <<'EOF'.",
	},
	{
		keyPythonPipe, "Python documentation, sys.stdout; PEP 686",
		"Into a pipe or a file, python on Windows writes the ANSI code page before version 3.15, so special characters break or the program stops. Write python -X utf8.",
		"In eine Pipe oder Datei schreibt python unter Windows vor Version 3.15 die ANSI-Codepage; Umlaute gehen kaputt, oder das Programm bricht ab. Besser python -X utf8.",
	},
	{
		keyPipeExit, "Bash Reference Manual 3.2.3, Pipelines; set -o pipefail",
		"A pipeline has the exit code of its last program, which is fine even when the first one failed. Set pipefail first: set -o pipefail.",
		"Eine Pipeline hat den Exit-Code ihres letzten Programms, und der ist auch dann gut, wenn das erste gescheitert ist. Davor set -o pipefail setzen.",
	},
	{
		keyDeclareHidesExit, "Bash Reference Manual 4.2, Bash Builtin Commands, local, declare; POSIX.1-2024, XCU export",
		"The exit code is that of local, export or declare itself, so a failure inside $( ) goes unseen. Declare first, then assign on its own.",
		"Der Exit-Code ist der von local, export oder declare selbst; ein Fehler in $( ) bleibt unbemerkt. Erst deklarieren, dann für sich zuweisen.",
	},
	{
		keyLoopVariable, "Bash Reference Manual 3.2.3, Pipelines",
		"Behind a pipe the loop runs in a subshell, so what it assigns is gone after it. Feed the loop with done < FILE or done < <(COMMAND).",
		"Hinter einer Pipe läuft die Schleife in einer Subshell; was sie zuweist, ist danach weg. Die Schleife mit done < DATEI oder done < <(BEFEHL) speisen.",
	},
	{
		keyPrefixAssign, "Bash Reference Manual 3.7.1, Simple Command Expansion",
		"The shell expands the arguments before the assignment in front of the command holds, so they get the old value. Assign in a command of its own: NAME=…; command.",
		"Die Shell löst die Argumente auf, bevor die vorangestellte Zuweisung gilt; sie bekommen den alten Wert. In einem eigenen Befehl zuweisen: NAME=…; Befehl.",
	},
	{
		keyAssignSpelled, "Bash Reference Manual 3.4, Shell Parameters",
		"This starts a program instead of assigning. Write name=value, without spaces around = and without $ in front.",
		"Das startet ein Programm, statt zuzuweisen. Richtig ist name=wert, ohne Leerzeichen um das = und ohne $ davor.",
	},
	{
		keyShellWords, "bash(1), -c; POSIX.1-2024, XCU sh, -c",
		"-c takes one word as the command; the words behind it become $0, $1 and so on. Quote the whole command, and behind ssh, whose host parses it once more, quote it twice.",
		"-c nimmt ein Wort als Befehl; die Wörter dahinter werden zu $0, $1 und so weiter. Den ganzen Befehl in Anführungszeichen setzen, hinter ssh, dessen Rechner ihn noch einmal liest, zweimal.",
	},
	{
		keyGlobTarget, "mv(1); cp(1); Bash Reference Manual 3.5.8, Filename Expansion",
		"The shell expands both patterns, and the last name becomes the target: nothing is renamed by pattern, and a file can be overwritten. Use a loop, or rename(1), and -n.",
		"Die Shell löst beide Muster auf, und der letzte Name wird das Ziel: Es wird nichts nach Muster umbenannt, und eine Datei kann überschrieben werden. Besser eine Schleife oder rename(1), dazu -n.",
	},
	{
		keyTarFile, "GNU tar manual 3.3.2, Short Option Style",
		"What follows f in the bundle is the archive's name, so tar writes or reads a file called after those letters. Put f last: tar -czf ARCHIVE ….",
		"Was im Bündel hinter f steht, ist der Name des Archivs; tar schreibt oder liest eine Datei mit diesen Buchstaben als Namen. Das f ans Ende setzen: tar -czf ARCHIV ….",
	},
	{
		keyLnRelative, "ln(1), -r; symlink(7)",
		"A relative target is looked up from the directory of the link, not from here, so the link may lead nowhere. Give a full path, or use ln -sr.",
		"Ein relatives Ziel wird vom Verzeichnis des Links aus gesucht, nicht von hier; der Link führt dann womöglich ins Leere. Einen ganzen Pfad angeben oder ln -sr nehmen.",
	},
	{
		keyCrontabRemove, "crontab(1), -r, -i",
		"-r removes the whole crontab without asking, and r stands next to e on the keyboard. Save it with crontab -l > FILE first, or use crontab -ri.",
		"-r entfernt die ganze Crontab ohne Rückfrage, und auf der Tastatur liegt r neben e. Erst mit crontab -l > DATEI sichern oder crontab -ri nehmen.",
	},
	{
		keyCrontabReplace, "crontab(1)",
		"crontab - replaces the whole crontab by its input, so all former lines are lost. Keep them: (crontab -l; echo '…') | crontab -.",
		"crontab - ersetzt die ganze Crontab durch die Eingabe; alle bisherigen Zeilen sind weg. Mit (crontab -l; echo '…') | crontab - bleiben sie erhalten.",
	},
	{
		keyDockerVolumes, "docker-system-prune(1), --volumes; docker compose down, --volumes",
		"Volumes hold the data of databases and other services, also of those that are stopped now. Leave the option out, or look with docker volume ls first.",
		"Volumes enthalten die Daten von Datenbanken und anderen Diensten, auch von solchen, die gerade nicht laufen. Die Option weglassen oder erst mit docker volume ls nachsehen.",
	},
}
