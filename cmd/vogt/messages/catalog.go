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
	ReadWhat
	NoCommand
	BadApproval // value
	TimedNeedsDuration
	ForOrAlways
	KeyOrBrowser
	WhichEmail
	BadCount
	WitnessNeeds
	NotifyNeedsTest
	MissingArgument
	TooManyArguments
	UsageOf   // command line
	SeeHelpOf // command
	TimeoutNeedsWait
	DurationTooLong // duration, most
	AsksAsYou       // email

	// Agents' OS users.
	HomeUndecided
	NeedsSudo
	NeedsPerson
	KeyOrUser
	StepOfAdd       // which
	StepOfRemove    // user
	IdentityStands  // email, name, cause
	UserStands      // user, name, cause
	UserStandsAlone // email, user, name
	AllUndone

	// Boxes.
	NoCommandToStart // agent
	NoAgentToStart
	NoWayToAuthority // profile
	PortOfProxy      // port
	NoCommandToConfine
	AlreadyBox    // profile
	AgentInBox    // profile, agent
	NoPersonInBox // profile
	AllowNever    // host, why
	AllowAddress  // the host in it
	AllowBad      // what was given, why
	ThisMachine
	NoPublicAddress  // class
	BadAuthority     // address, agent
	PrivateAuthority // address
	KeptBroken       // folder, agent
	LimitsOfBox      // names of limits
	LimitsOfProcesses
	BoxLacks // names
	NoHome
	AllowNeedsProxy // profile
	AskNeedsProxy   // profile
	HostRefused     // host and port, reason
	NotGranted      // what --allow would be given
	NoAddress
	NotPublic
	ClientGone
	NotConnected
	RuleDenies
	PersonDenied
	NobodyAnswered
	NeverAskedAbout
	NotByName
	NoCommandToProxy
	NoCommandToTest
	ProxyRefused // host and port, reason
	NoPort       // text
	NoProxyNamed
	ConnectRefused // host and port, why
	NoConnection   // proxy, cause
	SecretInBox    // variable, profile
	HostAsked      // host and port, id, address of the card
	HostIsShared
	HostIsUnknown
	UntilBoxEnds
	ClaimedProgram // path
	CallAsked      // call
	CallCovered    // call, standing grant
	AskedForRest   // calls, of how many
	AskNeedsLogin  // cause
	BoxLate
	ReducedBox
	SeatbeltBox
	ProtectedChanged // path
	PutAside         // path, new name
	LeftEarlier      // path, name now
	BadProfileName   // name
	NoProfile        // name, file, names that there are

	// Reading and the catalog.
	ReadEmpty
	ReadDashes         // flag error
	ReadLanguage       // value
	ReadLinesTakesNone // what was given
	ReadBadLines       // how many
	CatalogIgnored     // file, program
	CatalogLeftOut     // reason, program, file
	CatalogOwn         // program
	StillWaits         // command line

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
	ConfirmOnPage        // limit
	LogInOnPage          // limit
	KeyInstead           // command
	KeyThenAgain         // command
	TokenRenews          // left
	TokenEnds            // left
	TokenRenewsNow
	TokenEnded
	AgentAdded          // email, name
	AgentAddedElsewhere // email, authority
	AgentNotHere        // name
	NoAgents
	NoAgentHere // name
	AgentExists // name
	NotPaused   // email
	NonePaused
	NoOwnerYet
	KeyNotYours  // fingerprint, email
	LoginRefused // file, email
	PublicHalf   // file, private file

	// Domains.
	MockNotHeeded     // variable, flag
	NoRecordPossible  // email, authority
	RecordUnknown     // name, cause
	RecordNotCompared // name, cause, authority
	NoNamedAuthority  // domain, name, authority
	NoRecordThere     // name
	OtherAuthority    // domain, named, given
	OtherIssuer       // domain, named, cause
	NoDiscovery       // domain, named, cause
	FoundAuthority    // domain, authority
	RecordLoses
	NoSuchAgent // name
	AgentPaused // email, name

	// Standing grants.
	BadPattern // why
	NoStanding
	NoneOfStanding  // number
	StandingInBox   // command
	NoSuchStanding  // id
	StandingRevoked // id
	StandingResumed // id
	BadRoot         // folder
	NoneUnused      // days
	NoSuggestions   // days
	SuggestedHow    // key
	NoSuggestion    // key
	PatternNotFile  // why
	SafeIn          // folders
	SafeNowhere
	SafeAllOff
	SafeOn
	SafeOff
	GroupSet  // name, agents
	GroupLeft // agent, group
	NoGroups
	AllowNeedsBox
	NoLabels
	LabelsEnded
	TestForWhom
	BadPolicy     // why
	NoPolicy      // agent
	PolicyCleared // agent
	PolicyUsed    // person

	// Delegations and deputies.
	DelegateWhere
	OneEnd
	BadTime // text
	NoDelegations
	NoSuchDelegation  // id
	DelegationRevoked // id
	DelegationValid   // id
	DelegationInvalid // id
	DeputyNeeds
	NoDeputies
	NoSuchDeputy // id
	DeputyEnded  // id
	FirstOfTwo   // grant, type
	AsTheFirst   // person, type

	// Uses, and boxes that were ended.
	StandingUsed // standing grant, person
	BoxesStopped // boxes, counted
	BoxesEnded   // boxes, counted
	BoxKilled    // agent
	OneBox
	ManyBoxes        // number
	AgentIsPaused    // name
	PausedHereOnly   // name
	GoesOnHere       // name
	PausedElsewhere  // name
	ResumedElsewhere // name
	CannotPauseHere  // name, cause
	AgentRemoved     // email
	HomeStays        // folder
	AgentResumed     // email
	AllResumed
	KeyRotated // email, fingerprint
	NoKeys
	KeyAdded   // fingerprint
	KeyTaken   // fingerprint
	KeyRemoved // fingerprint
	LoginKeyRemoved
	NoSuchKey // what
	ManyKeys  // what
	AgentsChangeNoKeys
	PasskeyLink
	PasskeyOnPage
	Panicked // agents, logins, grants, each counted
	OneAgent
	ManyAgents // number
	OneLogin
	ManyLogins // number
	OneGrant
	ManyGrants // number

	// The log.
	Erased
	NoRecord      // what
	LogMismatch   // detail
	Accepted      // size now, before
	WitnessServes // address, key
	NotifySummary
	NotifyFailed   // what it did
	NotifyExited   // exit code
	NotifyRestart  // file
	NotifyNone     // file
	Exported       // records, file
	ExportIsOlder  // its records, remembered records
	ReceiptMisfits // grant

	// Hints beside an error.
	Hint     // text
	Evidence // file
	LoginAdvice
	AgentLoginAdvice // name
	StartAdvice
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
	RunUnresolved
	RunUnboxed
	RunSwapped
	RunUnseen

	// Why a folder cannot be a workspace, in the order of package confine.
	WideSystem   // workspace
	WideHome     // workspace, home
	WideSettings // workspace
	WideStarts   // workspace
	WideSecret   // workspace
	WideInSecret // workspace, folder
	WideHolds    // workspace, folder
	WideAdvice
	NoWorkspace     // workspace
	WorkspaceIsFile // workspace

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
	ReadWhat:           {"no line is given: vogt read -- LINE", "keine Zeile angegeben: vogt read -- ZEILE"},
	NeedsSudo:          {"an OS user is made by root: run the command with sudo", "einen Benutzer legt root an: den Befehl mit sudo ausführen"},
	NeedsPerson:        {"nobody is named whose agent it is to be: run the command with sudo as yourself, not in a shell of root", "es ist niemand genannt, dem der Agent gehören soll: den Befehl selbst mit sudo ausführen, nicht in einer Shell von root"},
	KeyOrUser:          {"--key names a key that is elsewhere; with --os-user the key is made in the agent's home", "--key nennt einen Schlüssel anderswo; mit --os-user entsteht der Schlüssel im Home des Agenten"},
	StepOfAdd:          {"the step %q failed", "der Schritt %q ist gescheitert"},
	StepOfRemove:       {"the agent was not removed, and its user %s stands; its processes are ended", "der Agent wurde nicht entfernt, und sein Benutzer %s besteht; seine Prozesse sind beendet"},
	IdentityStands:     {"the agent %[1]s is enrolled and could not be removed: vogt agent remove %[2]s (%[3]v)", "der Agent %[1]s ist aufgenommen und ließ sich nicht entfernen: vogt agent remove %[2]s (%[3]v)"},
	UserStands:         {"the user %[1]s stands and could not be removed: sudo vogt agent user remove %[2]s --archive-home (%[3]v)", "der Benutzer %[1]s besteht und ließ sich nicht entfernen: sudo vogt agent user remove %[2]s --archive-home (%[3]v)"},
	UserStandsAlone:    {"%[1]s is removed, but not its user %[2]s: sudo vogt agent user remove %[3]s --keep-home", "%[1]s ist entfernt, aber nicht sein Benutzer %[2]s: sudo vogt agent user remove %[3]s --keep-home"},
	AllUndone:          {"all that was done is undone", "alles Getane ist rückgängig gemacht"},
	HomeUndecided:      {"say what becomes of the home: --keep-home or --archive-home", "sag, was aus dem Home wird: --keep-home oder --archive-home"},
	NoCommandToStart:   {"no command is given: vogt agent start %s -- COMMAND", "kein Befehl angegeben: vogt agent start %s -- BEFEHL"},
	NoAgentToStart:     {"no agent is named: vogt agent start NAME -- COMMAND", "kein Agent genannt: vogt agent start NAME -- BEFEHL"},
	NoWayToAuthority:   {"the agent could not reach the authority: the profile %s, or .vogt/confine.toml of the workspace, has no net = \"proxy\": put it there, or start the agent with --profile agent", "der Agent könnte die Autorität nicht erreichen: Das Profil %s oder .vogt/confine.toml im Ordner hat kein net = \"proxy\": trag es ein, oder starte den Agenten mit --profile agent"},
	PortOfProxy:        {"the authority listens on port %d, which in a box is the proxy's: let it listen on another one (listen in vogtd.toml), and log the agent in there", "die Autorität lauscht auf Port %d, der in einer Box dem Proxy gehört: lass sie auf einem anderen lauschen (listen in vogtd.toml) und melde den Agenten dort an"},
	NoCommandToConfine: {"no command is given: vogt confine -- COMMAND", "kein Befehl angegeben: vogt confine -- BEFEHL"},
	AlreadyBox:         {"this is a box of Vogt already (profile %s), and in a box no other can be made: start the command as it is, it runs in this box; \"vogt run -- COMMAND\" asks from here", "dies ist schon eine Box von Vogt (Profil %s), und in einer Box lässt sich keine weitere machen: starte den Befehl, wie er ist, er läuft in dieser Box; „vogt run -- BEFEHL“ fragt von hier"},
	AgentInBox:         {"this is a box of Vogt already (profile %[1]s), and agents are started from outside of it: leave it, then: vogt agent start %[2]s -- COMMAND", "dies ist schon eine Box von Vogt (Profil %[1]s), und Agenten werden von außerhalb gestartet: verlass sie, dann: vogt agent start %[2]s -- BEFEHL"},
	NoPersonInBox:      {"this is a box of Vogt (profile %s), and no person's login is in it: cards are answered outside of it; from here \"vogt run -- COMMAND\" asks", "dies ist eine Box von Vogt (Profil %s), und die Anmeldung einer Person gibt es darin nicht: Anfragen werden außerhalb beantwortet; von hier fragt „vogt run -- BEFEHL“"},
	AllowNever:         {"--allow %s cannot work: %s; the proxy of a box reaches public addresses only. The authority needs no --allow (vogt agent start); for other services use a profile with net = \"host\", or start them in the box", "--allow %s kann nicht wirken: %s; der Proxy einer Box erreicht nur öffentliche Adressen. Die Autorität braucht kein --allow (vogt agent start); für andere Dienste nimm ein Profil mit net = \"host\" oder starte sie in der Box"},
	AllowAddress:       {"--allow wants a host, not the address of a page: --allow %s", "--allow erwartet einen Host, nicht die Adresse einer Seite: --allow %s"},
	AllowBad:           {"--allow %q: want name, *.name or name:port: %s", "--allow %q: erwartet wird name, *.name oder name:port: %s"},
	ThisMachine:        {"it is this machine, and in the box it would be the box itself", "es ist diese Maschine, und in der Box wäre es die Box selbst"},
	NoPublicAddress:    {"it is no public address (%s)", "es ist keine öffentliche Adresse (%s)"},
	BadAuthority:       {"the address of the authority, %[1]q, cannot be read: log the agent in anew (vogt login EMAIL --agent %[2]s)", "die Adresse der Autorität, %[1]q, ist nicht zu lesen: melde den Agenten neu an (vogt login E-MAIL --agent %[2]s)"},
	PrivateAuthority:   {"the authority %s has a private address, which a box does not reach: make it reachable by a port of this machine (ssh -L) or under a public name, and log the agent in there", "die Autorität %s hat eine private Adresse, die eine Box nicht erreicht: mach sie über einen Port dieser Maschine (ssh -L) oder unter einem öffentlichen Namen erreichbar und melde den Agenten dort an"},
	KeptBroken:         {"what helps: look at %[1]s and move aside what is in the way; without that folder a new home is made. Is the agent's key gone, enrol it again: vogt agent add %[2]s", "was hilft: sieh dir %[1]s an und räum beiseite, was im Weg ist; ohne diesen Ordner wird ein neues Home angelegt. Fehlt der Schlüssel des Agenten, nimm ihn neu auf: vogt agent add %[2]s"},
	LimitsOfBox:        {"box: a control group holds for all of it: %s", "Box: für sie als Ganzes gilt durch eine Kontrollgruppe: %s"},
	LimitsOfProcesses:  {"box: limits are those of each process, since this user can make no control group (cgroup v2) here", "Box: Grenzen gelten je Prozess, weil dieser Benutzer hier keine Kontrollgruppe (cgroup v2) anlegen kann"},
	BoxLacks:           {"box: it lacks %s", "Box: es fehlt ihr %s"},
	NoHome:             {"HOME is not set: set it to the folder that the box is to hide", "HOME ist nicht gesetzt: setze es auf den Ordner, den die Box verbergen soll"},
	AskNeedsProxy:      {"--ask is for a box whose connections go through the proxy, and the profile %s has none (net = \"proxy\"); with --allow HOST the box of a profile without a network gets one", "--ask ist für eine Box, deren Verbindungen durch den Proxy gehen, und das Profil %s hat keinen (net = \"proxy\"); mit --allow HOST bekommt die Box eines Profils ohne Netz einen"},
	AllowNeedsProxy:    {"--allow is for a box without the machine's network, and the profile %s has it (net = \"host\")", "--allow ist für eine Box ohne das Netz der Maschine, und das Profil %s hat es (net = \"host\")"},
	HostAsked:          {"the box waits for an answer about %s: vogt grant approve %s, or %s", "die Box wartet auf eine Antwort zu %s: vogt grant approve %s, oder %s"},
	HostIsShared:       {"anybody can put something there: what goes to it can go to anybody", "dort kann jeder etwas ablegen: was dorthin geht, kann an jeden gehen"},
	HostIsUnknown:      {"nothing is known of it", "über ihn ist nichts bekannt"},
	UntilBoxEnds:       {"for this box, until it ends", "für diese Box, bis sie endet"},
	ClaimedProgram:     {"%s (claimed)", "%s (behauptet)"},
	CallAsked:          {"%s", "%s"},
	CallCovered:        {"%s (covered by %s)", "%s (gedeckt durch %s)"},
	AskedForRest:       {"%d of %d calls", "%d von %d Aufrufen"},
	AskNeedsLogin:      {"nobody can be asked about hosts: %s", "nach Hosts kann niemand gefragt werden: %s"},
	HostRefused:        {"the box may not reach %s: %s", "die Box darf %s nicht erreichen: %s"},
	NotGranted:         {"no rule names it; what permits it: --allow %s, or hosts in the profile", "keine Regel nennt ihn; erlaubt wird er durch --allow %s oder unter hosts im Profil"},
	NoAddress:          {"the name does not resolve here; check how it is written", "der Name lässt sich hier nicht auflösen; prüfe, wie er geschrieben ist"},
	NotPublic:          {"it leads to an address that is not public, or not the rule's; only a rule of a profile that names its network (within) can permit that", "er führt zu einer Adresse, die nicht öffentlich oder nicht die der Regel ist; das erlaubt nur eine Regel eines Profils, die ihr Netz nennt (within)"},
	ClientGone:         {"the program gave up waiting before it was connected", "das Programm hat das Warten aufgegeben, bevor es verbunden war"},
	NotConnected:       {"the host does not accept the connection; check host and port, or try later", "der Host nimmt die Verbindung nicht an; prüfe Host und Port, oder versuche es später"},
	RuleDenies:         {"a rule of the profile denies it", "eine Regel des Profils verbietet ihn"},
	PersonDenied:       {"a person was asked and refused", "eine Person wurde gefragt und hat abgelehnt"},
	NobodyAnswered:     {"a person was asked and did not answer in time; ask again when somebody can", "eine Person wurde gefragt und hat nicht rechtzeitig geantwortet; frage wieder, wenn jemand es kann"},
	NeverAskedAbout:    {"nobody is asked about such a host; what permits it: --allow %s, or hosts in the profile", "nach einem solchen Host wird niemand gefragt; erlaubt wird er durch --allow %s oder unter hosts im Profil"},
	NotByName:          {"the address stands for no name; connect to hosts by their names", "die Adresse steht für keinen Namen; verbinde mit Hosts über ihre Namen"},
	NoCommandToProxy:   {"no command is given: vogt proxy -- COMMAND", "kein Befehl angegeben: vogt proxy -- BEFEHL"},
	NoCommandToTest:    {"no command is given: vogt standing test --for NAME -- COMMAND", "kein Befehl angegeben: vogt standing test --for NAME -- BEFEHL"},
	ProxyRefused:       {"the proxy does not let %s be reached: %s", "der Proxy lässt %s nicht zu: %s"},
	NoPort:             {"%q is no port from 1 to 65535", "%q ist kein Port von 1 bis 65535"},
	NoProxyNamed:       {"no variable names a proxy: start it in a box with hosts, or with \"vogt proxy\"", "keine Variable nennt einen Proxy: starte es in einer Box mit Hosts oder mit „vogt proxy“"},
	ConnectRefused:     {"%s is not reached: %s", "%s wird nicht erreicht: %s"},
	NoConnection:       {"there is no way by the proxy %s: %s", "über den Proxy %s führt kein Weg: %s"},
	SecretInBox:        {"the variable %s holds a secret for a header, and the profile %s lets it into the box: take it out of env", "die Variable %s enthält ein Geheimnis für einen Header, und das Profil %s lässt sie in die Box: nimm sie aus env heraus"},
	BoxLate:            {"the box was ended, since its time was up (wall_seconds of the profile)", "die Box wurde beendet, weil ihre Zeit um war (wall_seconds des Profils)"},
	ReducedBox:         {"this was a reduced box, as this machine has no namespaces for ordinary users: hooks and settings in the workspace were writable, and other processes visible", "das war eine eingeschränkte Box, weil diese Maschine gewöhnlichen Benutzern keine Namensräume gibt: Hooks und Einstellungen im Ordner waren beschreibbar und andere Prozesse sichtbar"},
	SeatbeltBox:        {"this was a box of Seatbelt, which was never tested on macOS: do not rely on it", "das war eine Box von Seatbelt, die auf macOS nie erprobt wurde: verlass dich nicht darauf"},
	ProtectedChanged:   {"%s is protected, and not what it was before the command; look at it before you use the folder again", "%s ist geschützt und nicht mehr, was es vor dem Befehl war; sieh es dir an, bevor du den Ordner wieder verwendest"},
	PutAside:           {"the command has planted %s, which git would obey; it is now %s", "der Befehl hat %s hinterlassen, was git befolgen würde; es heißt jetzt %s"},
	LeftEarlier:        {"a box that was killed has changed %s, which is now %s; look at it before you use the folder again", "eine Box, die abgebrochen wurde, hat %s verändert; es heißt jetzt %s; sieh es dir an, bevor du den Ordner wieder verwendest"},
	BadProfileName:     {"profile %q: want a name, not a path", "Profil %q: erwartet wird ein Name, kein Pfad"},
	NoProfile:          {"there is no profile %q: neither is there a file %s, nor does Vogt bring it; it brings %s", "es gibt kein Profil %q: weder eine Datei %s noch bringt Vogt es mit; mitgebracht werden %s"},
	ReadEmpty:          {"the line is empty: vogt read -- LINE", "die Zeile ist leer: vogt read -- ZEILE"},
	ReadDashes:         {"%s; what belongs to the line stands after --: vogt read -- LINE", "%s; was zur Zeile gehört, steht hinter --: vogt read -- ZEILE"},
	ReadLanguage:       {"--lang %q: want en or de", "--lang %q: möglich sind en und de"},
	ReadLinesTakesNone: {"--jsonl reads standard input and takes no line", "--jsonl liest die Standardeingabe und nimmt keine Zeile"},
	ReadBadLines:       {"%d lines of standard input could not be read; their answers say why", "%d Zeilen der Standardeingabe waren nicht lesbar; ihre Antworten sagen, warum"},
	CatalogIgnored:     {"%s is left out: Vogt brings an entry of %s itself, and that one holds. Remove the file", "%s wird ausgelassen: Vogt bringt selbst einen Eintrag für %s mit, und der gilt. Entferne die Datei"},
	CatalogLeftOut:     {"%s. The file is left out, and %s counts as unknown: mend it until `vogt catalog test %s` passes, or remove it", "%s. Die Datei wird ausgelassen, und %s gilt als unbekannt: Berichtige sie, bis `vogt catalog test %s` durchläuft, oder entferne sie"},
	CatalogOwn:         {"Vogt brings an entry of %s itself, and that one holds: a file of this name in /etc/vogt/catalog counts for nothing", "Vogt bringt selbst einen Eintrag für %s mit, und der gilt: eine Datei dieses Namens in /etc/vogt/catalog zählt nicht"},
	NoCommand:          {"no command is given: vogt run [flags] -- COMMAND [ARGUMENT…]", "kein Befehl angegeben: vogt run [Optionen] -- BEFEHL [ARGUMENT…]"},
	BadApproval:        {"--approval %q: want once, timed or always", "--approval %q: möglich sind once, timed oder always"},
	TimedNeedsDuration: {"--approval timed needs --duration, and nothing else has one", "--approval timed braucht --duration, alles andere hat keine"},
	ForOrAlways:        {"--for and --always exclude each other", "--for und --always schließen einander aus"},
	KeyOrBrowser:       {"--key, --page and --browser exclude each other", "--key, --page und --browser schließen einander aus"},
	WhichEmail:         {"as whom? vogt login EMAIL", "als wer? vogt login E-MAIL"},
	BadCount:           {"--lines must be at least 1", "--lines muss mindestens 1 sein"},
	WitnessNeeds:       {"--listen and --key are needed", "--listen und --key sind nötig"},
	MissingArgument:    {"an argument is missing", "es fehlt ein Argument"},
	TooManyArguments:   {"too many arguments", "zu viele Argumente"},
	UsageOf:            {"usage: %s", "Aufruf: %s"},
	SeeHelpOf:          {"see \"%s --help\"", "siehe „%s --help“"},
	TimeoutNeedsWait:   {"--timeout says how long --wait waits; give both", "--timeout sagt, wie lange --wait wartet; gib beide an"},
	DurationTooLong:    {"%s is longer than a permission can last; at most %s", "%s ist länger, als eine Erlaubnis gelten kann; höchstens %s"},
	AsksAsYou:          {"this asks as YOU (%s); to ask as an agent: --agent NAME", "das fragt als DU SELBST (%s); um als Agent zu fragen: --agent NAME"},
	StillWaits:         {"interrupted; the request still waits; Execute: %s", "unterbrochen; die Anfrage wartet weiter; Execute: %s"},
	NotifyNeedsTest:    {"nothing to do; to try the command, use --test", "nichts zu tun; zum Ausprobieren des Befehls dient --test"},

	NoGrants:           {"no grants", "keine Anfragen oder Erlaubnisse"},
	ReasonOf:           {"%s (the agent's own words, unverified)", "%s (eigene Worte des Agenten, ungeprüft)"},
	NotBound:           {"not bound", "nicht festgelegt"},
	YouSign:            {"this is what you sign:", "das unterschreibst du:"},
	Approved:           {"%s approved (%s)", "%s erlaubt (%s)"},
	ApproveOnPage:      {"this login has no SSH key, and a login alone permits nothing; answer on the page, or give a key with --key", "zu dieser Anmeldung gehört kein SSH-Schlüssel, und eine Anmeldung allein erlaubt nichts; antworte auf der Seite oder gib mit --key einen Schlüssel an"},
	IsAlready:          {"grant %s is %s", "%s ist %s"},
	AgentsDoNotApprove: {"an agent approves nothing; ask the person who owns you", "ein Agent erlaubt nichts; frage die Person, der du gehörst"},
	AgentsDoNotAccept:  {"an agent does not accept another log; ask the person who owns you", "ein Agent nimmt kein anderes Protokoll an; frage die Person, der du gehörst"},

	Passphrase:           {"Passphrase for %s: ", "Passphrase für %s: "},
	LoggedIn:             {"logged in as %s at %s", "angemeldet als %s bei %s"},
	LoggedOut:            {"%s is logged out", "%s ist abgemeldet"},
	LogoutLocal:          {"the login was removed here, but the authority does not know: the token stays valid until %s", "die Anmeldung wurde hier entfernt, aber die Autorität weiß es nicht: Das Token bleibt gültig bis %s"},
	ReplacedLogin:        {"this replaces the login of %s at %s", "dies ersetzt die Anmeldung von %s bei %s"},
	OtherPersonConfirmed: {"%s confirmed the login, not %s", "die Anmeldung hat %s bestätigt, nicht %s"},
	ConfirmOnPage:        {"open this page and confirm there with a passkey; waiting %s at most", "öffne diese Seite und bestätige dort mit einem Passkey; ich warte höchstens %s"},
	LogInOnPage:          {"open this address in a browser on this machine and log in there; waiting %s at most", "öffne diese Adresse in einem Browser auf diesem Rechner und melde dich dort an; ich warte höchstens %s"},
	KeyInstead:           {"without a passkey there: stop this (Ctrl-C) and log in with your SSH key: %s", "ohne Passkey dort: brich ab (Strg-C) und melde dich mit deinem SSH-Schlüssel an: %s"},
	KeyThenAgain:         {"without a passkey there: stop this (Ctrl-C), log in with your SSH key (%s), then give this command again", "ohne Passkey dort: brich ab (Strg-C), melde dich mit deinem SSH-Schlüssel an (%s), dann gib diesen Befehl noch einmal ein"},
	TokenRenews:          {"valid for %s, renews itself", "gültig für %s, erneuert sich selbst"},
	TokenEnds:            {"valid for %s", "gültig für %s"},
	TokenRenewsNow:       {"ended, renews itself at the next call", "abgelaufen, erneuert sich beim nächsten Aufruf"},
	TokenEnded:           {"ended; log in again: vogt login", "abgelaufen; melde dich erneut an: vogt login"},
	AgentAdded:           {"%s is enrolled and logged in here; use it with --agent %s", "%s ist aufgenommen und hier angemeldet; zu benutzen mit --agent %s"},
	AgentAddedElsewhere:  {"%[1]s is enrolled; where its private key is, log it in: vogt login %[1]s --idp %[2]s --key FILE", "%[1]s ist aufgenommen; melde ihn dort an, wo sein privater Schlüssel ist: vogt login %[1]s --idp %[2]s --key DATEI"},
	AgentNotHere:         {"the agent %s was not made here; give its new public key with --key", "der Agent %s wurde nicht hier angelegt; gib seinen neuen öffentlichen Schlüssel mit --key an"},
	NoAgents:             {"no agents", "keine Agenten"},
	NoAgentHere:          {"there is no agent %[1]s on this machine; enrol it: vogt agent add %[1]s", "auf diesem Rechner gibt es keinen Agenten %[1]s; aufnehmen mit: vogt agent add %[1]s"},
	AgentExists:          {"there is an agent %[1]s already; to give it a new key: vogt agent rotate-key %[1]s; or use another name", "den Agenten %[1]s gibt es schon; ein neuer Schlüssel für ihn: vogt agent rotate-key %[1]s; oder nimm einen anderen Namen"},
	NotPaused:            {"%s is not paused; nothing to do", "%s ist nicht angehalten; nichts zu tun"},
	NonePaused:           {"none of your agents is paused; nothing to do", "keiner deiner Agenten ist angehalten; nichts zu tun"},
	NoOwnerYet:           {"nobody owns this authority yet; run: vogt up", "diese Autorität gehört noch niemandem; starte: vogt up"},
	KeyNotYours:          {"this key (%s) is not one of %s's; nothing was decided. See: vogt key list, or the account page", "dieser Schlüssel (%s) ist keiner von %s; nichts wurde entschieden. Siehe: vogt key list, oder die Kontoseite"},
	LoginRefused:         {"the login was refused: the key %s is not one of %s's, or nobody has this address here. See the account page", "die Anmeldung wurde abgewiesen: Der Schlüssel %s ist keiner von %s, oder niemand hat hier diese Adresse. Siehe die Kontoseite"},
	PublicHalf:           {"%s: that is the public half; give the private key file, %s", "%s: Das ist die öffentliche Hälfte; gib die Datei mit dem privaten Schlüssel an, %s"},
	MockNotHeeded:        {"%s is set, and is not heeded without --%s", "%s ist gesetzt und gilt nicht ohne --%s"},
	NoRecordPossible:     {"no domain could name an authority for %s; trying the one of this machine, %s", "keine Domain könnte eine Autorität für %s nennen; ich versuche die dieses Rechners, %s"},
	RecordUnknown:        {"which authority the domain names cannot be found out (%s): %s. Name the authority with --idp URL, or try again", "welche Autorität die Domain nennt, lässt sich nicht feststellen (%s): %s. Nenne die Autorität mit --idp URL, oder versuche es noch einmal"},
	RecordNotCompared:    {"which authority the domain names cannot be found out (%s): %s; going on with %s, as given", "welche Autorität die Domain nennt, lässt sich nicht feststellen (%s): %s; ich nehme %s, wie angegeben"},
	NoNamedAuthority:     {"%s names no authority (no record that counts at %s); trying the one of this machine, %s. To choose another: --idp URL", "%s nennt keine Autorität (kein Eintrag, der gilt, unter %s); ich versuche die dieses Rechners, %s. Für eine andere: --idp URL"},
	NoRecordThere:        {"there is no record that counts at %s", "unter %s gibt es keinen Eintrag, der gilt"},
	OtherAuthority:       {"%s names %s as the authority of its people, and the login would go to %s. Nothing was sent. If you mean that one, give --force; else leave --idp out, or correct authority in vogt.toml", "%s nennt %s als Autorität seiner Leute, und die Anmeldung ginge an %s. Nichts wurde gesendet. Wenn du diese meinst, gib --force an; sonst lass --idp weg, oder berichtige authority in vogt.toml"},
	OtherIssuer:          {"%s names %s as its authority, but who answers there is another one: %s. Nothing was sent. Whoever keeps the domain's record has to write it as the authority calls itself", "%s nennt %s als Autorität, aber dort antwortet eine andere: %s. Nichts wurde gesendet. Wer den Eintrag der Domain pflegt, muss ihn so schreiben, wie die Autorität sich nennt"},
	NoDiscovery:          {"%s names %s as its authority, which does not answer as one: %s. See: vogt dns-check", "%s nennt %s als Autorität, die nicht als solche antwortet: %s. Siehe: vogt dns-check"},
	FoundAuthority:       {"%s names %s as the authority of its people", "%s nennt %s als Autorität seiner Leute"},
	RecordLoses:          {"another one has precedence", "ein anderer geht vor"},
	NoSuchAgent:          {"you have no agent %s", "du hast keinen Agenten %s"},
	BadPattern:           {"the pattern cannot be taken: %s", "das Muster geht so nicht: %s"},
	DelegateWhere:        {"--at is missing: the service at which the delegate is in your place", "--at fehlt: der Dienst, bei dem der Beauftragte an deiner Stelle ist"},
	OneEnd:               {"--for, --until and --always are three ends; give one of them", "--for, --until und --always sind drei Enden; gib eines davon an"},
	BadTime:              {"%q is no time; write 2030-01-31 or 2030-01-31T12:00:00Z", "%q ist keine Zeit; schreibe 2030-01-31 oder 2030-01-31T12:00:00Z"},
	NoDelegations:        {"no delegations in force", "keine geltenden Delegationen"},
	NoSuchDelegation:     {"you have no delegation %s; see: vogt delegation list --all", "du hast keine Delegation %s; siehe: vogt delegation list --all"},
	DelegationRevoked:    {"%s is revoked", "%s ist zurückgenommen"},
	DelegationValid:      {"%s may be used", "%s darf benutzt werden"},
	DelegationInvalid:    {"%s may not be used like this", "%s darf so nicht benutzt werden"},
	DeputyNeeds:          {"--until is missing: a deputy is one for a time", "--until fehlt: eine Vertretung gilt für eine Zeit"},
	NoDeputies:           {"no deputies", "keine Vertretungen"},
	NoSuchDeputy:         {"you have no deputy %s; see: vogt deputy list --all", "du hast keine Vertretung %s; siehe: vogt deputy list --all"},
	DeputyEnded:          {"%s is ended, and what was allowed under it and nobody has used", "%s ist beendet, und was darunter erlaubt wurde und noch niemand benutzt hat"},
	FirstOfTwo:           {"%s: your yes (%s) is on record; a second person must allow the same", "%s: dein Ja (%s) ist aufgezeichnet; eine zweite Person muss dasselbe erlauben"},
	AsTheFirst:           {"%s allowed this first (%s); you are asked for the same", "%s hat es zuerst erlaubt (%s); du wirst um dasselbe gefragt"},
	NoStanding:           {"no standing grants", "keine Dauergenehmigungen"},
	NoneOfStanding:       {"nothing is in force; standing grants that are over: %d, see: vogt standing list --all", "nichts ist in Kraft; Dauergenehmigungen, die vorbei sind: %d, siehe: vogt standing list --all"},
	StandingInBox:        {"It covers what runs in such a box: %s", "Sie deckt ab, was in so einer Box läuft: %s"},
	NoSuchStanding:       {"you have no standing grant %s; see: vogt standing list", "du hast keine Dauergenehmigung %s; siehe: vogt standing list"},
	StandingRevoked:      {"%s is revoked, and what it gave and nobody has used", "%s ist zurückgenommen, und was daraus noch niemand benutzt hat"},
	StandingResumed:      {"%s covers again", "%s gilt wieder"},
	BadRoot:              {"--root %s: there is no such folder; name one that is there", "--root %s: den Ordner gibt es nicht; nenne einen, den es gibt"},
	NoneUnused:           {"each standing grant in force was used, or signed, in the last %d days", "jede Dauergenehmigung in Kraft wurde in den letzten %d Tagen benutzt oder unterschrieben"},
	NoSuggestions:        {"nothing in the last %d days makes a pattern that would have spared three cards or more", "in den letzten %d Tagen ergibt nichts ein Muster, das drei Karten oder mehr erspart hätte"},
	SuggestedHow:         {"sign one with: vogt standing add --suggested KEY; or write it out, change it and sign that: vogt standing suggest --json", "unterschreiben mit: vogt standing add --suggested SCHLÜSSEL; oder ausgeben, ändern und das unterschreiben: vogt standing suggest --json"},
	NoSuggestion:         {"there is no suggestion %s any more; see: vogt standing suggest", "den Vorschlag %s gibt es nicht mehr; siehe: vogt standing suggest"},
	PatternNotFile:       {"--pattern-file: %s", "--pattern-file: %s"},
	SafeIn:               {"without a card it may look around in %s (vogt safe list); the rest asks", "ohne Karte darf er sich umsehen in %s (vogt safe list); der Rest fragt"},
	SafeNowhere:          {"without a card it may use what names no folder (echo, date) and read the system's documentation; name folders with: vogt safe on --for NAME --root FOLDER", "ohne Karte darf er, was keinen Ordner nennt (echo, date), und die Dokumentation des Systems lesen; Ordner nennen mit: vogt safe on --for NAME --root ORDNER"},
	SafeAllOff:           {"the safe commands are off for all of your agents; on again: vogt safe on", "die harmlosen Befehle sind für alle deine Agenten ausgeschaltet; wieder an: vogt safe on"},
	SafeOn:               {"the safe commands are on", "die harmlosen Befehle sind eingeschaltet"},
	SafeOff:              {"the safe commands are off, and what they gave and nobody has used", "die harmlosen Befehle sind ausgeschaltet, und was daraus noch niemand benutzt hat"},
	GroupSet:             {"the group %s is: %s", "die Gruppe %s ist: %s"},
	GroupLeft:            {"%s is no longer in the group %s", "%s ist nicht mehr in der Gruppe %s"},
	AllowNeedsBox:        {"--allow names hosts of a box; add --confine", "--allow nennt Hosts einer Box; dazu gehört --confine"},
	NoGroups:             {"no groups of agents", "keine Gruppen von Agenten"},
	NoLabels:             {"no labels: patterns cover what they say", "keine Marken: Muster decken ab, was sie sagen"},
	LabelsEnded:          {"its labels are ended", "seine Marken sind beendet"},
	TestForWhom:          {"say which agent would ask: --for NAME", "sag, welcher Agent fragen würde: --for NAME"},
	StandingUsed:         {"allowed by the standing grant %s of %s", "erlaubt durch die Dauergenehmigung %s von %s"},
	BadPolicy:            {"the policy cannot be taken: %s", "die Regel geht so nicht: %s"},
	NoPolicy:             {"%s has no policy: its requests are asked, but for what grants and patterns cover", "%s hat keine Regel: Seine Anfragen werden gefragt, soweit nichts Erlaubtes und kein Muster sie abdeckt"},
	PolicyCleared:        {"the policy of %s is cleared, and what it gave and nobody has used", "die Regel von %s ist aufgehoben, und was daraus noch niemand benutzt hat"},
	PolicyUsed:           {"allowed by the policy of %s", "erlaubt durch die Regel von %s"},
	AgentPaused:          {"%s is paused; to let it go on: vogt resume %s", "%s ist angehalten; fortsetzen mit: vogt resume %s"},
	BoxesStopped:         {"stopped on this machine: %s", "auf diesem Rechner angehalten: %s"},
	BoxesEnded:           {"ended on this machine: %s", "auf diesem Rechner beendet: %s"},
	BoxKilled:            {"this box of %s was ended from outside of it (vogt agent kill, or the agent was removed)", "diese Box von %s wurde von außen beendet (vogt agent kill, oder der Agent wurde entfernt)"},
	OneBox:               {"one box", "eine Box"},
	ManyBoxes:            {"%d boxes", "%d Boxen"},
	AgentIsPaused:        {"%[1]s is paused; nothing is started until its owner lets it go on: vogt resume %[1]s", "%[1]s ist angehalten; nichts wird gestartet, bis der Besitzer ihn fortsetzt: vogt resume %[1]s"},
	PausedHereOnly:       {"%[1]s is paused on this machine only; the authority was not told. To let it go on: vogt resume %[1]s", "%[1]s ist nur auf diesem Rechner angehalten; die Autorität hat es nicht erfahren. Fortsetzen mit: vogt resume %[1]s"},
	GoesOnHere:           {"%s was paused on this machine only, and goes on", "%s war nur auf diesem Rechner angehalten und läuft weiter"},
	PausedElsewhere:      {"%s was paused; all in this box is stopped", "%s wurde angehalten; alles in dieser Box steht still"},
	ResumedElsewhere:     {"%s goes on", "%s läuft weiter"},
	CannotPauseHere:      {"%s is paused, but this box could not be stopped or continued: %s", "%s ist angehalten, aber diese Box ließ sich nicht anhalten oder fortsetzen: %s"},
	AgentRemoved:         {"%s is removed", "%s ist entfernt"},
	HomeStays:            {"the home of its boxes stays, with what programs keep there, such as logins of models: %s; delete it if nobody needs it", "das Home seiner Boxen bleibt, mit dem, was Programme dort aufbewahren, wie Anmeldungen bei Modellen: %s; lösche es, wenn niemand es braucht"},
	AgentResumed:         {"%s goes on", "%s macht weiter"},
	AllResumed:           {"all your agents go on", "alle deine Agenten machen weiter"},
	KeyRotated:           {"%s has a new key: %s", "%s hat einen neuen Schlüssel: %s"},
	NoKeys:               {"no SSH keys", "keine SSH-Schlüssel"},
	KeyAdded:             {"%s decides for you from now on", "%s entscheidet ab jetzt für dich"},
	KeyTaken:             {"%s is registered already, for you or for somebody else; take another key", "%s ist schon eingetragen, für dich oder für jemand anderen; nimm einen anderen Schlüssel"},
	KeyRemoved:           {"%s is removed", "%s ist entfernt"},
	LoginKeyRemoved:      {"that was the key of the login here, which has ended with it; log in with another one: vogt login --key FILE", "das war der Schlüssel der Anmeldung hier, die mit ihm geendet hat; melde dich mit einem anderen an: vogt login --key DATEI"},
	NoSuchKey:            {"you have no key %s; see yours: vogt key list", "du hast keinen Schlüssel %s; deine zeigt: vogt key list"},
	ManyKeys:             {"several of your keys begin with %s; give more of it", "mehrere deiner Schlüssel beginnen mit %s; gib mehr davon an"},
	AgentsChangeNoKeys:   {"an agent changes no keys; ask the person who owns you", "ein Agent ändert keine Schlüssel; frage die Person, der du gehörst"},
	PasskeyLink:          {"open this address in the browser that shall hold the passkey; it works once, for ten minutes", "öffne diese Adresse in dem Browser, der den Passkey haben soll; sie gilt einmal, zehn Minuten lang"},
	PasskeyOnPage:        {"confirmed; the browser goes on to make the passkey", "bestätigt; der Browser geht weiter und legt den Passkey an"},
	Panicked:             {"stopped: %s, %s, %s; to go on: vogt resume", "angehalten: %s, %s, %s; fortsetzen mit: vogt resume"},
	OneAgent:             {"1 agent", "1 Agent"},
	ManyAgents:           {"%d agents", "%d Agenten"},
	OneLogin:             {"1 login", "1 Anmeldung"},
	ManyLogins:           {"%d logins", "%d Anmeldungen"},
	OneGrant:             {"1 request or permission", "1 Anfrage oder Erlaubnis"},
	ManyGrants:           {"%d requests and permissions", "%d Anfragen und Erlaubnisse"},

	Erased:         {"(erased)", "(gelöscht)"},
	NoRecord:       {"no record %s that you may see", "kein Eintrag %s, den du sehen darfst"},
	LogMismatch:    {"the log does not fit: %s", "das Protokoll stimmt nicht: %s"},
	Accepted:       {"the log with %d records is accepted (before: %d)", "das Protokoll mit %d Einträgen ist angenommen (vorher: %d)"},
	WitnessServes:  {"serving at %s\nverifier key: %s", "erreichbar unter %s\nPrüfschlüssel: %s"},
	NotifySummary:  {"A test by vogt notify --test", "Ein Versuch mit vogt notify --test"},
	NotifyFailed:   {"the notification command did not do what it should: %s", "der Benachrichtigungsbefehl tat nicht, was er soll: %s"},
	NotifyExited:   {"the notification command exited with %d", "der Benachrichtigungsbefehl endete mit %d"},
	NotifyRestart:  {"an authority that runs reads %s only at its start; restart it: vogt down; vogt up", "eine laufende Autorität liest %s nur beim Start; starte sie neu: vogt down; vogt up"},
	NotifyNone:     {"no notification command is set; name one in %s, under [notify]: command = [\"/path/to/program\"]", "es ist kein Benachrichtigungsbefehl eingestellt; nenne einen in %s, unter [notify]: command = [\"/pfad/zum/programm\"]"},
	Exported:       {"%d records written to %s", "%d Einträge nach %s geschrieben"},
	ExportIsOlder:  {"the export has %d records and this machine remembers %d, so it was compared with its own checkpoint only", "der Auszug hat %d Einträge, und dieser Rechner kennt %d; er wurde darum nur mit seinem eigenen Prüfpunkt verglichen"},
	ReceiptMisfits: {"the receipt of %s does not hold", "die Quittung von %s hält nicht stand"},

	Hint:             {"hint: %s", "Hinweis: %s"},
	Evidence:         {"evidence: %s", "Beleg: %s"},
	LoginAdvice:      {"log in with: vogt login EMAIL", "anmelden mit: vogt login E-MAIL"},
	AgentLoginAdvice: {"log in with: vogt login EMAIL --agent %s", "anmelden mit: vogt login E-MAIL --agent %s"},
	StartAdvice:      {"start it with: vogt up", "starten mit: vogt up"},
	ForkAdvice:       {"ALARM: the authority has signed two histories that contradict each other. Believe no approval of it until it is known why; keep the evidence, and ask whoever runs it. If it was restored from an older copy, a person can accept the log with: vogt audit accept", "ALARM: Die Autorität hat zwei Verläufe unterschrieben, die einander widersprechen. Glaube keiner ihrer Erlaubnisse, bis der Grund bekannt ist; bewahre den Beleg auf und frage, wer sie betreibt. Wurde sie aus einer älteren Kopie wiederhergestellt, kann eine Person das Protokoll annehmen: vogt audit accept"},
	BehindAdvice:     {"if the authority was restored from an older copy, a person can accept its log as it is now: vogt audit accept. Otherwise somebody may be hiding records; ask whoever runs it", "wurde die Autorität aus einer älteren Kopie wiederhergestellt, kann eine Person ihr Protokoll annehmen, wie es jetzt ist: vogt audit accept. Sonst verbirgt womöglich jemand Einträge; frage, wer sie betreibt"},
	ClockDiffers:     {"the clocks differ: %s; permissions may look expired", "die Uhren gehen auseinander: %s; Erlaubnisse können abgelaufen erscheinen"},

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
	RunRelativePath:  {"PATH finds it through an entry that is not an absolute folder; take that entry out of PATH, or name the program by its path", "PATH findet es über einen Eintrag, der kein absoluter Ordner ist; nimm den Eintrag aus PATH, oder nenne das Programm mit seinem Pfad"},
	RunIsFolder:      {"is a folder", "ist ein Ordner"},
	RunForbidden:     {"is not executable", "ist nicht ausführbar"},
	RunArchitecture:  {"is built for another kind of machine", "ist für eine andere Art von Rechner gebaut"},
	RunNoProgram:     {"is neither a program nor a script with a #! line", "ist weder ein Programm noch ein Skript mit einer #!-Zeile"},
	RunBadScript:     {"its #! line does not name an absolute path", "seine #!-Zeile nennt keinen absoluten Pfad"},
	RunNoInterpreter: {"its interpreter or loader does not exist", "sein Interpreter oder Lader existiert nicht"},
	RunNoFolder:      {"the working directory does not exist any more; go to one that does", "das Arbeitsverzeichnis gibt es nicht mehr; wechsle in eines, das es gibt"},
	RunChanged:       {"changed after it was looked at; nothing ran. Ask again", "hat sich geändert, nachdem es geprüft wurde; nichts wurde ausgeführt. Frage erneut"},
	RunReparsed:      {"cmd.exe would read its arguments again; run the program that it starts instead", "cmd.exe würde seine Argumente noch einmal lesen; starte stattdessen das Programm, das es aufruft"},
	RunUnresolved:    {"its #! line has env start a program that cannot be known; name the interpreter by its path there, or as in: #!/usr/bin/env -S PROGRAM ARGUMENTS", "seine #!-Zeile lässt env ein Programm starten, das sich nicht feststellen lässt; nenne dort den Interpreter mit seinem Pfad, oder wie in: #!/usr/bin/env -S PROGRAMM ARGUMENTE"},
	RunUnboxed:       {"not started, for want of its box", "nicht gestartet, weil die Box fehlt"},
	RunSwapped:       {"another file was executed in its place; it was killed before it did anything. Somebody is tampering with this machine", "an seiner Stelle wurde eine andere Datei ausgeführt; sie wurde beendet, bevor sie etwas tat. Jemand manipuliert diesen Rechner"},
	RunUnseen:        {"it, or what runs it, lies outside of what the box shows; nothing ran. Put it into the workspace, or name its folder under read in a profile", "es selbst oder sein Interpreter liegt außerhalb dessen, was die Box zeigt; nichts wurde ausgeführt. Leg es in den Ordner der Box, oder nenne seinen Ordner unter read in einem Profil"},

	WideSystem:      {"%s cannot be a workspace", "%s kann nicht der Ordner einer Box sein"},
	WideHome:        {"the workspace %s holds the home %s", "im Ordner %s liegt das Home %s"},
	WideSettings:    {"%s cannot be a workspace, since it holds the settings of programs", "%s kann nicht der Ordner einer Box sein, denn dort liegen die Einstellungen von Programmen"},
	WideStarts:      {"%s cannot be a workspace, since programs in it are started by themselves", "%s kann nicht der Ordner einer Box sein, denn Programme darin werden von selbst gestartet"},
	WideSecret:      {"%s cannot be a workspace, since no box may see it", "%s kann nicht der Ordner einer Box sein, denn keine Box darf ihn sehen"},
	WideInSecret:    {"the workspace %s lies in %s, which no box may see", "der Ordner %s liegt in %s, was keine Box sehen darf"},
	WideHolds:       {"the workspace %s holds %s, which no box may see", "im Ordner %s liegt %s, was keine Box sehen darf"},
	WideAdvice:      {"start the box in the folder of a project", "starte die Box im Ordner eines Projekts"},
	NoWorkspace:     {"the workspace %s: there is no such folder", "den Ordner %s für die Box gibt es nicht"},
	WorkspaceIsFile: {"the workspace %s is no folder; name the folder that it is in", "%s ist kein Ordner; nenne den Ordner, in dem es liegt"},
}
