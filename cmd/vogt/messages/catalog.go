package messages

// The messages.
const (
	// What became of an asking.
	PendingStatus Key = iota // owner, risk
	WaitingStatus            // owner, duration
	PendingSteps
	Unanswered        // duration
	Denied            // grant, person
	Revoked           // grant
	Expired           // grant
	ExpiredUnanswered // grant
	Used              // grant
	UnknownState      // grant, state
	NoteOf            // person, note
	Unreported        // cause
	OtherFolder       // granted, found
	OtherProgram      // granted, found
	OtherAction       // what, granted, found

	// The command line.
	SeeHelp
	NoCommand
	BadApproval // value
	TimedNeedsDuration
	ForOrAlways
	KeyOrBrowser
	WhichEmail
	BadCount
	WitnessNeeds
	NotifyNeedsTest

	// Answers.
	NoGrants
	ReasonOf // quoted reason
	NotBound
	YouSign
	Approved // grant, kind
	ApproveOnPage
	IsAlready // grant, state
	AgentsDoNotApprove
	AgentsDoNotAccept

	// Logins and agents.
	Passphrase           // file
	LoggedIn             // email, authority
	LoggedOut            // email
	LogoutLocal          // time
	ReplacedLogin        // email, authority
	OtherPersonConfirmed // who, wanted
	ConfirmOnPage
	TokenRenews // left
	TokenEnds   // left
	TokenRenewsNow
	TokenEnded
	AgentAdded          // email, name
	AgentAddedElsewhere // email, authority
	AgentIsHere         // name, email
	AgentNotHere        // name
	NoAgents
	NoSuchAgent  // name
	AgentPaused  // email, name
	AgentRemoved // email
	AgentResumed // email
	AllResumed
	KeyRotated // email, fingerprint
	Panicked   // agents, tokens, grants

	// The log.
	Erased
	NoRecord      // what
	LogMismatch   // detail
	Accepted      // size now, before
	WitnessServes // address, key
	NotifySummary
	NotifyFailed

	// Hints beside an error.
	Hint        // text
	Evidence    // file
	LoginAdvice //
	ForkAdvice
	BehindAdvice
	ClockDiffers // how

	// The kinds of client errors, in the order of package client.
	KindMalformed
	KindUnreachable
	KindNotLoggedIn
	KindRefused
	KindUnknown
	KindDecided
	KindSpent
	KindInvalid
	KindBusy
	KindWrongIssuer
	KindDistrusted
	KindKeyChanged
	KindForked
	KindBehind
	KindBadFile
	KindKeyLocked
	KindNotConfirmed

	// The kinds of execution errors, in the order of package execution.
	RunUnexecutable
	RunEmpty
	RunTooLong
	RunBadBytes
	RunNotFound
	RunRelativePath
	RunIsFolder
	RunForbidden
	RunArchitecture
	RunNoProgram
	RunBadScript
	RunNoInterpreter
	RunNoFolder
	RunChanged
	RunReparsed

	keys // how many there are
)

// catalog holds each message in English and German.
var catalog = [keys][2]string{
	PendingStatus: {"(waits for %s, risk %s)", "(wartet auf %s, Risiko %s)"},
	WaitingStatus: {"(waiting for %s, at most %s)", "(warte auf %s, höchstens %s)"},
	PendingSteps: {
		"Tell the person that this request waits, and give them the Approve address. Then run the Execute line: it waits for the answer and runs the command once. Exit code 75 means \"not decided yet\" and is not a failure.",
		"Sage der Person, dass diese Anfrage wartet, und nenne ihr die Adresse hinter Approve. Führe dann die Zeile hinter Execute aus: Sie wartet auf die Antwort und führt den Befehl einmal aus. Exit-Code 75 heißt „noch nicht entschieden“ und ist kein Fehler.",
	},
	Unanswered:        {"nobody answered within %s; the request still waits", "niemand hat innerhalb von %s geantwortet; die Anfrage wartet weiter"},
	Denied:            {"grant %s was denied by %s; nothing ran. Do not repeat it unchanged", "Die Anfrage %s wurde von %s abgelehnt; nichts wurde ausgeführt. Wiederhole sie nicht unverändert"},
	Revoked:           {"grant %s was revoked; nothing ran", "Die Erlaubnis %s wurde zurückgenommen; nichts wurde ausgeführt"},
	Expired:           {"grant %s has expired; nothing ran. Ask again", "Die Erlaubnis %s ist abgelaufen; nichts wurde ausgeführt. Frage erneut"},
	ExpiredUnanswered: {"nobody answered request %s in time; nothing ran. Ask again", "Niemand hat die Anfrage %s rechtzeitig beantwortet; nichts wurde ausgeführt. Frage erneut"},
	Used:              {"grant %s was used before; nothing ran. Ask again", "Die Erlaubnis %s wurde schon benutzt; nichts wurde ausgeführt. Frage erneut"},
	UnknownState:      {"grant %s is in the unknown state %q; nothing ran", "Die Erlaubnis %s hat den unbekannten Zustand %q; nichts wurde ausgeführt"},
	NoteOf:            {"%s says: %s", "%s sagt: %s"},
	Unreported:        {"the command ran, but its outcome could neither be reported nor kept: %s", "Der Befehl lief, aber sein Ergebnis konnte weder gemeldet noch aufbewahrt werden: %s"},
	OtherFolder:       {"the grant is for the folder %s, but this is %s; go there and run it again", "Die Erlaubnis gilt für den Ordner %s, dies ist aber %s; wechsle dorthin und versuche es erneut"},
	OtherProgram:      {"the grant is for the program %s, but here it is %s; ask again", "Die Erlaubnis gilt für das Programm %s, hier ist es aber %s; frage erneut"},
	OtherAction:       {"the grant is for another %s: it says %s, here it is %s; ask again", "Die Erlaubnis gilt für etwas anderes (%s): dort %s, hier %s; frage erneut"},

	SeeHelp:            {"see \"vogt help\"", "siehe „vogt help“"},
	NoCommand:          {"no command is given: vogt run [flags] -- COMMAND [ARGUMENT…]", "kein Befehl angegeben: vogt run [Optionen] -- BEFEHL [ARGUMENT…]"},
	BadApproval:        {"--approval %q: want once, timed or always", "--approval %q: möglich sind once, timed oder always"},
	TimedNeedsDuration: {"--approval timed needs --duration, and nothing else has one", "--approval timed braucht --duration, alles andere hat keine"},
	ForOrAlways:        {"--for and --always exclude each other", "--for und --always schließen einander aus"},
	KeyOrBrowser:       {"--key and --browser exclude each other", "--key und --browser schließen einander aus"},
	WhichEmail:         {"as whom? vogt login EMAIL", "als wer? vogt login E-MAIL"},
	BadCount:           {"--lines must be at least 1", "--lines muss mindestens 1 sein"},
	WitnessNeeds:       {"--listen and --key are needed", "--listen und --key sind nötig"},
	NotifyNeedsTest:    {"nothing to do; to try the command, use --test", "nichts zu tun; zum Ausprobieren des Befehls dient --test"},

	NoGrants:           {"no grants", "keine Anfragen oder Erlaubnisse"},
	ReasonOf:           {"%s (the agent's own words, unverified)", "%s (eigene Worte des Agenten, ungeprüft)"},
	NotBound:           {"not bound", "nicht festgelegt"},
	YouSign:            {"this is what you sign:", "das unterschreiben Sie:"},
	Approved:           {"%s approved (%s)", "%s erlaubt (%s)"},
	ApproveOnPage:      {"this login has no SSH key, and a login alone permits nothing; answer on the page, or give a key with --key", "zu dieser Anmeldung gehört kein SSH-Schlüssel, und eine Anmeldung allein erlaubt nichts; antworten Sie auf der Seite oder geben Sie mit --key einen Schlüssel an"},
	IsAlready:          {"grant %s is %s", "%s ist %s"},
	AgentsDoNotApprove: {"an agent approves nothing; ask the person who owns you", "ein Agent erlaubt nichts; frage die Person, der du gehörst"},
	AgentsDoNotAccept:  {"an agent does not accept another log; ask the person who owns you", "ein Agent nimmt kein anderes Protokoll an; frage die Person, der du gehörst"},

	Passphrase:           {"Passphrase for %s: ", "Passphrase für %s: "},
	LoggedIn:             {"logged in as %s at %s", "angemeldet als %s bei %s"},
	LoggedOut:            {"%s is logged out", "%s ist abgemeldet"},
	LogoutLocal:          {"the login was removed here, but the authority does not know: the token stays valid until %s", "die Anmeldung wurde hier entfernt, aber die Autorität weiß es nicht: Das Token bleibt gültig bis %s"},
	ReplacedLogin:        {"this replaces the login of %s at %s", "dies ersetzt die Anmeldung von %s bei %s"},
	OtherPersonConfirmed: {"%s confirmed the login, not %s", "die Anmeldung hat %s bestätigt, nicht %s"},
	ConfirmOnPage:        {"open this page and confirm there; waiting", "öffnen Sie diese Seite und bestätigen Sie dort; ich warte"},
	TokenRenews:          {"valid for %s, renews itself", "gültig für %s, erneuert sich selbst"},
	TokenEnds:            {"valid for %s", "gültig für %s"},
	TokenRenewsNow:       {"ended, renews itself at the next call", "abgelaufen, erneuert sich beim nächsten Aufruf"},
	TokenEnded:           {"ended; log in again: vogt login", "abgelaufen; melden Sie sich erneut an: vogt login"},
	AgentAdded:           {"%s is enrolled and logged in here; use it with --agent %s", "%s ist aufgenommen und hier angemeldet; zu benutzen mit --agent %s"},
	AgentAddedElsewhere:  {"%[1]s is enrolled; where its private key is, log it in: vogt login %[1]s --idp %[2]s --key FILE", "%[1]s ist aufgenommen; melden Sie ihn dort an, wo sein privater Schlüssel ist: vogt login %[1]s --idp %[2]s --key DATEI"},
	AgentIsHere:          {"the agent %s is here already (%s)", "den Agenten %s gibt es hier schon (%s)"},
	AgentNotHere:         {"the agent %s was not made here; give its new public key with --key", "der Agent %s wurde nicht hier angelegt; geben Sie seinen neuen öffentlichen Schlüssel mit --key an"},
	NoAgents:             {"no agents", "keine Agenten"},
	NoSuchAgent:          {"you have no agent %s", "Sie haben keinen Agenten %s"},
	AgentPaused:          {"%s is paused; to let it go on: vogt resume %s", "%s ist angehalten; fortsetzen mit: vogt resume %s"},
	AgentRemoved:         {"%s is removed", "%s ist entfernt"},
	AgentResumed:         {"%s goes on", "%s macht weiter"},
	AllResumed:           {"all your agents go on", "alle Ihre Agenten machen weiter"},
	KeyRotated:           {"%s has a new key: %s", "%s hat einen neuen Schlüssel: %s"},
	Panicked:             {"stopped: %d agents, %d logins, %d requests and permissions; to go on: vogt resume", "angehalten: %d Agenten, %d Anmeldungen, %d Anfragen und Erlaubnisse; fortsetzen mit: vogt resume"},

	Erased:        {"(erased)", "(gelöscht)"},
	NoRecord:      {"no record %s that you may see", "kein Eintrag %s, den Sie sehen dürfen"},
	LogMismatch:   {"the log does not fit: %s", "das Protokoll stimmt nicht: %s"},
	Accepted:      {"the log with %d records is accepted (before: %d)", "das Protokoll mit %d Einträgen ist angenommen (vorher: %d)"},
	WitnessServes: {"serving at %s\nverifier key: %s", "erreichbar unter %s\nPrüfschlüssel: %s"},
	NotifySummary: {"A test by vogt notify --test", "Ein Versuch mit vogt notify --test"},
	NotifyFailed:  {"the notification command did not do what it should", "der Benachrichtigungsbefehl tat nicht, was er soll"},

	Hint:         {"hint: %s", "Hinweis: %s"},
	Evidence:     {"evidence: %s", "Beleg: %s"},
	LoginAdvice:  {"log in with: vogt login EMAIL", "anmelden mit: vogt login E-MAIL"},
	ForkAdvice:   {"ALARM: the authority has signed two histories that contradict each other. Believe no approval of it until it is known why; keep the evidence, and ask whoever runs it. If it was restored from an older copy, a person can accept the log with: vogt audit accept", "ALARM: Die Autorität hat zwei Verläufe unterschrieben, die einander widersprechen. Glauben Sie keiner ihrer Erlaubnisse, bis der Grund bekannt ist; bewahren Sie den Beleg auf und fragen Sie, wer sie betreibt. Wurde sie aus einer älteren Kopie wiederhergestellt, kann eine Person das Protokoll annehmen: vogt audit accept"},
	BehindAdvice: {"if the authority was restored from an older copy, a person can accept its log as it is now: vogt audit accept. Otherwise somebody may be hiding records; ask whoever runs it", "wurde die Autorität aus einer älteren Kopie wiederhergestellt, kann eine Person ihr Protokoll annehmen, wie es jetzt ist: vogt audit accept. Sonst verbirgt womöglich jemand Einträge; fragen Sie, wer sie betreibt"},
	ClockDiffers: {"the clocks differ: %s; permissions may look expired", "die Uhren gehen auseinander: %s; Erlaubnisse können abgelaufen erscheinen"},

	KindMalformed:    {"the answer of the authority makes no sense", "die Antwort der Autorität ergibt keinen Sinn"},
	KindUnreachable:  {"the authority cannot be reached", "die Autorität ist nicht erreichbar"},
	KindNotLoggedIn:  {"not logged in", "nicht angemeldet"},
	KindRefused:      {"refused", "abgewiesen"},
	KindUnknown:      {"not found", "nicht gefunden"},
	KindDecided:      {"already decided", "schon entschieden"},
	KindSpent:        {"no longer valid", "nicht mehr gültig"},
	KindInvalid:      {"the request is not valid", "die Anfrage ist nicht gültig"},
	KindBusy:         {"too many requests", "zu viele Anfragen"},
	KindWrongIssuer:  {"the authority calls itself otherwise", "die Autorität nennt sich anders"},
	KindDistrusted:   {"the authority's answer does not hold; nothing ran", "die Antwort der Autorität hält nicht stand; nichts wurde ausgeführt"},
	KindKeyChanged:   {"the authority's key changed", "der Schlüssel der Autorität hat sich geändert"},
	KindForked:       {"the authority shows different logs to different callers", "die Autorität zeigt verschiedenen Aufrufern verschiedene Protokolle"},
	KindBehind:       {"the authority was restored from an older copy, or its log was cut", "die Autorität wurde aus einer älteren Kopie wiederhergestellt, oder ihr Protokoll wurde gekürzt"},
	KindBadFile:      {"the file cannot be used", "die Datei ist nicht brauchbar"},
	KindKeyLocked:    {"the key cannot be used", "der Schlüssel ist nicht brauchbar"},
	KindNotConfirmed: {"not confirmed", "nicht bestätigt"},

	RunUnexecutable:  {"cannot be executed", "kann nicht ausgeführt werden"},
	RunEmpty:         {"no program is named", "kein Programm genannt"},
	RunTooLong:       {"the argument list is longer than 1 MiB", "die Argumentliste ist länger als 1 MiB"},
	RunBadBytes:      {"an argument holds a NUL byte or is not valid UTF-8", "ein Argument enthält ein NUL-Byte oder ist kein gültiges UTF-8"},
	RunNotFound:      {"no such program", "kein solches Programm"},
	RunRelativePath:  {"PATH finds it through an entry that is not an absolute folder; take that entry out of PATH, or name the program by its path", "PATH findet es über einen Eintrag, der kein absoluter Ordner ist; nehmen Sie den Eintrag aus PATH, oder nennen Sie das Programm mit seinem Pfad"},
	RunIsFolder:      {"is a folder", "ist ein Ordner"},
	RunForbidden:     {"is not executable", "ist nicht ausführbar"},
	RunArchitecture:  {"is built for another kind of machine", "ist für eine andere Art von Rechner gebaut"},
	RunNoProgram:     {"is neither a program nor a script with a #! line", "ist weder ein Programm noch ein Skript mit einer #!-Zeile"},
	RunBadScript:     {"its #! line does not name an absolute path", "seine #!-Zeile nennt keinen absoluten Pfad"},
	RunNoInterpreter: {"its interpreter or loader does not exist", "sein Interpreter oder Lader existiert nicht"},
	RunNoFolder:      {"the working directory does not exist any more; go to one that does", "das Arbeitsverzeichnis gibt es nicht mehr; wechseln Sie in eines, das es gibt"},
	RunChanged:       {"changed after it was looked at; nothing ran. Ask again", "hat sich geändert, nachdem es geprüft wurde; nichts wurde ausgeführt. Frage erneut"},
	RunReparsed:      {"cmd.exe would read its arguments again; run the program that it starts instead", "cmd.exe würde seine Argumente noch einmal lesen; starten Sie stattdessen das Programm, das es aufruft"},
}
