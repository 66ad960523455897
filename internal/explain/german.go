package explain

import "maps"

// Notes returns the sentences for notes by their keys in a language, by its
// tag; nil for English, whose sentences the notes bring along. They say what
// kind of problem it is; Note says what it is about too.
func Notes(tag string) map[string]string {
	if tag != "de" {
		return nil
	}
	return maps.Clone(german)
}

// german are the notes by their keys.
var german = map[string]string{
	"alias":             "Ein Alias, der vorher definiert wurde; ob er gilt, hängt von der Shell ab.",
	"arithmetic":        "Rechnen mit einem Wert, der nicht sicher eine Zahl ist, kann jeden Befehl ausführen.",
	"bidi":              "Ein unsichtbares Zeichen ändert die Richtung, in der der Text erscheint.",
	"blank":             "Ein Zeichen sieht aus wie ein Leerzeichen, trennt aber keine Wörter.",
	"braces":            "Die Klammern ergeben mehr Wörter, als gelesen werden.",
	"catalog":           "Was das Programm mit diesen Wörtern tut, ist nicht sicher bekannt.",
	"coproc":            "Was hinter coproc steht, ist nicht, was es zu sein scheint.",
	"code":              "Was der Programmtext tut, ist nicht vollständig bekannt.",
	"comment":           "Ein Kommentar endet mit einem Rückstrich: Für bash ist die nächste Zeile ein Befehl.",
	"completion":        "Es werden Befehle benannt, die die Shell später ausführt.",
	"control":           "Ein Steuerzeichen kann verbergen oder ändern, was angezeigt wird.",
	"dash":              "Ein typografischer Strich steht, wo eine Option beginnen soll.",
	"delimiter":         "Wo das Here-Dokument endet, ist nicht bekannt.",
	"enable-f":          "„enable -f“ lädt Code in die Shell.",
	"enable-n":          "„enable -n“ lässt den Namen eines eingebauten Befehls ein Programm bedeuten.",
	"export-f":          "Eine exportierte Funktion tritt an die Stelle von Programmen.",
	"foreign-shell":     "Diese Shell liest den Text auf ihre eigene Weise.",
	"fork-bomb":         "Die Funktion startet sich endlos selbst.",
	"hash-p":            "„hash -p“ lässt einen Namen ein anderes Programm bedeuten.",
	"host":              "Das Wort kann einen Rechner benennen.",
	"indirection":       "Ein Wert wird als Name benutzt; ein Index darin würde ausgewertet.",
	"interactive":       "Befehle werden vom Terminal gelesen.",
	"invalid-utf8":      "Der Text ist kein gültiges UTF-8.",
	"invisible":         "Ein Zeichen ist unsichtbar.",
	"mixed-script":      "Ein Wort mischt lateinische Buchstaben mit fremden, die ihnen gleichen können.",
	"mode":              "Welche Rechte vergeben werden, ist nicht bekannt.",
	"nameref":           "Ein Namensverweis lässt spätere Namen andere bedeuten.",
	"nested-quotes":     "Einfache Anführungszeichen in einer Ersetzung zwischen doppelten quotieren nicht.",
	"nested-syntax":     "Ein Text, den eine Shell liest, ist kein gültiger Shell-Text.",
	"not-bash":          "Diese Schreibweise gehört zu einer anderen Shell.",
	"not-found-handler": "Die Funktion command_not_found_handle läuft, sobald ein Programm fehlt.",
	"not-in-catalog":    "Das Programm steht nicht im Katalog.",
	"not-posix":         "sh kann das anders lesen als bash.",
	"nul":               "Der Text enthält ein NUL-Zeichen.",
	"open-array":        "Ein Text, der durch eine Deklaration zu einem Feld wird, wird ausgewertet.",
	"open-declaration":  "Was deklariert wird, ist nicht bekannt.",
	"open-test":         "Das Wort kann zu einem Operator von test werden, der das nächste auswertet.",
	"open-input":        "Was als Befehle gelesen wird, ist nicht bekannt.",
	"open-option":       "Ein Wort kann eine Option sein, die eine Variable benennt.",
	"open-pattern":      "Ein erweitertes Muster enthält Ersetzungen.",
	"open-process":      "Eine Prozessersetzung steht, wo ihr nicht gefolgt wird.",
	"open-text":         "Teile eines Textes, den eine Shell liest, sind nicht bekannt.",
	"program":           "Welches Programm läuft, geht aus dem Text nicht hervor.",
	"prompt-expansion":  "${…@P} wertet den Wert als Eingabeaufforderung aus und damit jeden Befehl darin.",
	"ps4":               "PS4 wird bei set -x vor jedem Befehl ausgewertet.",
	"quote":             "Typografische Anführungszeichen sind für eine Shell keine.",
	"recursion":         "Eine Funktion ruft sich selbst auf; wie oft, ist nicht bekannt.",
	"rewritten":         "Der Text enthält ein Konstrukt, das nur in anderen Worten gelesen werden kann.",
	"set":               "Eine Option der Shell wird gesetzt, die spätere Wörter anders bedeuten lässt.",
	"setting":           "Eine Einstellung steht nicht im Katalog.",
	"shared-host":       "Diesen Rechner teilen sich viele: Was dort liegt, kann von jedem sein.",
	"shopt":             "Eine Option der Shell wird gesetzt, die spätere Wörter anders bedeuten lässt.",
	"split":             "Der Text, der zum Befehl wird, ist nicht verständlich.",
	"subscript":         "Ein Name, der nicht wörtlich dasteht, kann einen Index haben, der ausgewertet wird.",
	"syntax":            "Der Text ist kein gültiger Shell-Text.",
	"too-deep":          "Der Befehl ist tiefer verschachtelt, als gelesen wird.",
	"too-long":          "Der Text ist länger, als gelesen wird.",
	"too-many":          "Es sind mehr Befehle, als gelesen werden.",
	"too-much":          "Der Text braucht mehr Arbeit, als für einen aufgewandt wird.",
	"transport":         "Der Transport ext:: führt einen Befehl aus.",
	"trap":              "Eine Falle läuft später, wenn Namen anderes bedeuten können.",
	"unknown-syntax":    "Diese Schreibweise wird nicht verstanden.",
	"variable":          "Eine Variable ändert, welcher Code läuft oder welche Einstellungen gelten.",
}
