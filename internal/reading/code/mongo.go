package code

import "strings"

// readMongo reads the JavaScript that people give to mongosh. It reports
// whether the text consists of calls of known methods with literal arguments.
func readMongo(f *Finding, text string) bool {
	sure := true
	var rest strings.Builder
	for line := range strings.Lines(text) {
		// The commands of the shell are no JavaScript.
		words := strings.Fields(strings.TrimRight(strings.TrimSpace(line), ";"))
		if len(words) == 2 && (words[0] == "show" || words[0] == "use") && word(strings.ReplaceAll(words[1], "-", "_")) {
			continue
		}
		rest.WriteString(line)
	}
	toks := tokens(rest.String(), stepNode)
	for i, t := range toks[:len(toks)-4] {
		next := toks[i+1]
		switch t.kind {
		case tokName:
			member := i > 0 && toks[i-1].is(".")
			switch {
			case next.is("("):
				sure = mongoCall(f, toks, i, member) && sure
			case next.is(":") || member || t.named("db", "true", "false", "null", "rs"):
				switch t.text {
				case "$out", "$merge":
					f.Write = true
				case "__proto__", "constructor", "prototype":
					sure = false
				}
			default:
				sure = false
			}
		case tokString:
			sure = sure && t.literal
			if t.text == "$out" || t.text == "$merge" {
				f.Write = true
			}
		case tokOp:
			switch t.text {
			case "(":
				sure = sure && t.mate > 0 && i > 0 && toks[i-1].kind == tokName
			case ")", "{", "}", "[", "]", ",", ";", ".", ":", "-":
			default:
				sure = false
			}
		case tokRegex:
			sure = false // or a division
		}
	}
	return sure
}

// mongoCall judges the call whose name is token i.
func mongoCall(f *Finding, toks []token, i int, member bool) bool {
	name := toks[i].text
	if !member {
		switch name {
		case "ObjectId", "ISODate", "NumberLong", "NumberInt", "NumberDecimal", "Long", "Decimal128", "UUID", "Timestamp":
			return true
		case "printjson", "print", "tojson":
			return true
		case "load":
			if arg := toks[i+2]; arg.kind == tokString && arg.literal {
				f.reads(arg.text, true)
			}
		}
		return false
	}
	switch name {
	case "find", "findOne", "count", "countDocuments", "estimatedDocumentCount", "distinct", "aggregate", "sort", "limit", "skip",
		"project", "projection", "pretty", "toArray", "explain", "hint", "maxTimeMS", "batchSize", "itcount", "size", "hasNext",
		"getIndexes", "stats", "dataSize", "storageSize", "totalIndexSize", "totalSize", "getName", "getCollection",
		"getCollectionNames", "getCollectionInfos", "getSiblingDB", "serverStatus", "hostInfo", "version", "currentOp", "isMaster",
		"hello", "getUsers", "getUser", "getRoles", "getProfilingStatus", "listCommands", "readPref", "collation", "comment", "status", "conf":
		return true
	case "insert", "insertOne", "insertMany", "save", "update", "updateOne", "updateMany", "replaceOne", "findOneAndUpdate",
		"findOneAndReplace", "findAndModify", "createIndex", "createIndexes", "ensureIndex", "createCollection", "createView", "renameCollection":
		f.Write = true
		return true
	case "drop", "dropDatabase", "deleteOne", "deleteMany", "remove", "findOneAndDelete", "dropIndex", "dropIndexes", "dropUser", "dropRole", "bulkWrite":
		f.Write, f.Destroy = true, true
		return name != "bulkWrite"
	case "createUser", "updateUser", "grantRolesToUser", "createRole", "grantPrivilegesToRole", "changeUserPassword":
		f.Write, f.Privilege = true, true
		return true
	case "killOp", "shutdownServer", "stepDown":
		f.Destroy = true
	case "runCommand", "adminCommand":
		if toks[i+2].is("{") {
			mongoCommand(f, toks[i+3].text)
		}
	}
	return false
}

// mongoCommand judges the name of a database command.
func mongoCommand(f *Finding, name string) {
	switch name {
	case "drop", "dropDatabase", "delete", "dropIndexes", "dropUser":
		f.Write, f.Destroy = true, true
	case "insert", "update", "findAndModify", "create", "createIndexes", "renameCollection", "collMod":
		f.Write = true
	case "shutdown", "killOp":
		f.Destroy = true
	case "createUser", "grantRolesToUser":
		f.Write, f.Privilege = true, true
	}
}
