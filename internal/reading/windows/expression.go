package windows

import "strings"

// variable reads a variable or a subexpression at a dollar sign. It returns
// false, and reads nothing, if the sign stands for itself.
func (p *powershell) variable() bool {
	switch next := p.peekAt(1); {
	case next == '(':
		p.at += 2
		p.nested(')')
	case next == '{':
		end := strings.IndexByte(p.text[p.at:], '}')
		if end < 0 {
			p.incomplete()
			p.at = len(p.text)
			return true
		}
		name := p.text[p.at+2 : p.at+end]
		p.at += end + 1
		if drive, _, ok := strings.Cut(name, ":"); ok && !listed(scopes, drive) || strings.Contains(name, "`") {
			p.incomplete() // ${c:\file} is the file
		}
	case letter(next) || digit(next) || next == '_':
		p.at++
		p.variableName()
	case next == '?' || next == '^' || next == '$':
		p.at += 2
	case next >= 0x80:
		p.at++
		if _, size := p.quote(); size > 0 {
			p.at--
			return false
		}
		p.incomplete()
	default:
		return false
	}
	return true
}

// Names before the colon by which reading $name:x reads a variable.
const scopes = " env global script local private using variable "

func (p *powershell) variableName() {
	for start := p.at; p.more(); {
		c, next := p.peek(), p.peekAt(1)
		switch {
		case letter(c) || digit(c) || c == '_' || c == '?':
		case c == ':' && (letter(next) || digit(next) || next == '_'):
			if !listed(scopes, p.text[start:p.at]) {
				p.incomplete()
			}
		default:
			return
		}
		p.at++
	}
}

// steers reports whether giving the variable a value changes what later
// commands do.
func steers(name string) bool {
	name = strings.Trim(strings.TrimLeft(strings.ToLower(name), "$"), "{}")
	if scope, rest, ok := strings.Cut(name, ":"); ok {
		if !listed(" global script local private variable ", scope) {
			return true // env:, function:, alias:, a drive
		}
		name = rest
	}
	return listed(" psdefaultparametervalues psmoduleautoloadingpreference executioncontext profile pshome psscriptroot env psnativecommandargumentpassing ", name)
}

// nested reads statements up to a closing byte.
func (p *powershell) nested(closing byte) {
	p.blocks++
	p.statements(closing)
	p.blocks--
}

// block reads { … }, whose calls are reported.
func (p *powershell) block() {
	p.at++
	p.nested('}')
}

// table reads @{ key = value; … }.
func (p *powershell) table() {
	if !p.enter() {
		p.at = len(p.text)
		return
	}
	defer p.leave()
	p.at += 2
	for {
		p.space(true)
		switch c := p.peek(); {
		case !p.more():
			p.incomplete()
			return
		case c == '}':
			p.at++
			return
		case c == ';':
			p.at++
			continue
		}
		from := p.at
		p.key()
		p.space(true)
		if p.peek() != '=' {
			p.incomplete()
			if p.at == from {
				p.at++
			}
			continue
		}
		p.at++
		p.blocks++
		p.statement()
		p.blocks--
		if p.space(false); p.more() && strings.IndexByte(";}\r\n", p.peek()) < 0 {
			p.incomplete()
			p.at++
		}
	}
}

func (p *powershell) key() {
	if kind, size := p.quote(); kind != 0 {
		p.quoted(kind, size)
		return
	}
	switch p.peek() {
	case '(':
		p.at++
		p.nested(')')
	case '$':
		p.variable()
		p.members()
	default:
		for p.more() && strings.IndexByte(" \t\r\n=;}{()'\"`$", p.peek()) < 0 {
			p.at++
		}
	}
}

// Types that a value can be made into without doing anything.
const plainTypes = ` int int16 int32 int64 uint16 uint32 uint64 long short byte string char bool boolean double float single decimal datetime timespan
 array object void switch guid version ordered pscustomobject psobject hashtable regex bigint `

// plainStatic reports whether a member of a type only tells something.
func plainStatic(typ, member string) bool {
	members := ""
	switch typ {
	case "math":
		return true
	case "environment":
		members = " newline machinename username osversion processorcount is64bitoperatingsystem is64bitprocess version "
	case "datetime":
		members = " now utcnow today parse "
	case "guid":
		members = " newguid empty "
	case "string":
		members = " isnullorempty isnullorwhitespace join empty format concat "
	case "int", "long", "double", "int32", "int64":
		members = " maxvalue minvalue parse "
	case "char":
		members = " isdigit isletter isupper islower "
	case "timespan":
		members = " frommilliseconds fromseconds fromminutes fromhours fromdays zero "
	case "regex":
		members = " escape ismatch match matches replace split "
	}
	return listed(members, member)
}

// Methods that only tell something, whatever the object.
const plainMethods = ` tostring trim trimstart trimend startswith endswith toupper tolower substring padleft padright indexof lastindexof split adddays
 addhours addminutes addseconds addmonths addyears gettype contains containskey equals compareto toshortdatestring tolongdatestring
 touniversaltime tolocaltime `

const maxType = 256

// typeWord reads [Type] and, after it, a static member. If no type stands here
// nothing is read.
func (p *powershell) typeWord() bool {
	depth, end := 0, p.at
	for ; end < len(p.text) && end-p.at < maxType; end++ {
		c := p.text[end]
		if c == '[' {
			depth++
		} else if c == ']' {
			depth--
		} else if !letter(c) && !digit(c) && strings.IndexByte(" .,_`+", c) < 0 {
			return false
		}
		if depth == 0 {
			break
		}
	}
	if depth != 0 || end == len(p.text) {
		return false
	}
	name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(p.text[p.at+1:end])), "system.")
	name = strings.TrimSuffix(name, "[]")
	p.at = end + 1
	if !p.has("::") {
		if !listed(plainTypes, name) {
			p.incomplete()
		}
		return true
	}
	p.at += 2
	if !plainStatic(name, p.member()) {
		p.incomplete()
	}
	if p.peek() == '(' {
		p.at++
		p.nested(')')
	}
	p.members()
	return true
}

// member reads the name of a member.
func (p *powershell) member() string {
	from := p.at
	for letter(p.peek()) || digit(p.peek()) || p.peek() == '_' {
		p.at++
	}
	return strings.ToLower(p.text[from:p.at])
}

// members reads .Name, .Name(…), ::Name and […] directly after a value.
func (p *powershell) members() {
	for p.more() {
		next := p.peekAt(1)
		switch c := p.peek(); {
		case c == '[':
			p.at++
			p.nested(']')
		case c == '?' && (next == '.' || next == '['):
			p.at++
		case c == '.' && (letter(next) || next == '_'):
			p.at++
			name := p.member()
			if (p.peek() == '(' || p.peek() == '{') && !listed(plainMethods, name) {
				p.incomplete()
			}
			if p.peek() == '{' {
				p.block()
			} else if p.peek() == '(' {
				p.at++
				p.nested(')')
			}
		case c == '.' && next != 0 && strings.IndexByte("$('\"", next) >= 0:
			p.incomplete() // a member whose name is computed
			return
		case p.has("::"):
			p.incomplete()
			p.at += 2
			p.member()
			if p.peek() == '(' {
				p.at++
				p.nested(')')
			}
		default:
			return
		}
	}
}

// expression reads operators and values up to what ends a pipeline's element,
// or an assignment.
func (p *powershell) expression() {
	if !p.enter() {
		p.at = len(p.text)
		return
	}
	defer p.leave()
	place := p.reserve()
	var call Call
	start := p.at
	for {
		p.space(false)
		c := p.peek()
		switch {
		case !p.more() || strings.IndexByte(";|)}]\r\n&", c) >= 0:
			p.fill(place, call)
			return
		case c == '>' || c == '<' || (c == '2' || c == '*') && p.peekAt(1) == '>':
			p.redirection(&call)
		case c == '=' || strings.IndexByte("+-*/%", c) >= 0 && p.peekAt(1) == '=' || p.has("??="):
			p.assign(p.text[start:p.at])
			p.fill(place, call)
			return
		case strings.IndexByte(",!+*/%?:", c) >= 0:
			p.at++
			p.space(true)
		case p.dash() > 0:
			p.operator()
		case !p.value():
			p.incomplete()
			p.at++
		}
	}
}

// assign reads what follows a target: a statement of its own.
func (p *powershell) assign(target string) {
	p.at += strings.IndexByte(p.text[p.at:], '=') + 1
	for i, part := range strings.Split(target, ",") {
		part = strings.TrimSpace(part)
		if end := strings.LastIndexByte(part, ']'); end >= 0 && strings.HasPrefix(part, "[") {
			part = strings.TrimSpace(part[end+1:])
		}
		if !strings.HasPrefix(part, "$") || strings.ContainsAny(part, ".[(") || steers(part) || i > 16 {
			p.incomplete()
		}
	}
	p.space(true)
	p.blocks++
	p.statement()
	p.blocks--
}

// operator reads -eq and the like, and the sign of a number.
func (p *powershell) operator() {
	p.at += p.dash()
	name := p.member()
	p.space(true)
	if p.peek() == '[' {
		complete := p.complete
		p.typeWord()
		if name == "is" || name == "isnot" {
			p.complete = complete // a type that is only compared
		}
	}
}

// value reads one value with its members.
func (p *powershell) value() bool {
	if kind, size := p.quote(); kind != 0 {
		p.quoted(kind, size)
		p.members()
		return true
	}
	switch c := p.peek(); {
	case c == '$':
		if !p.variable() {
			return false
		}
	case c == '(':
		p.at++
		p.nested(')')
	case c == '{':
		p.block()
	case c == '[':
		return p.typeWord()
	case c == '@' && p.peekAt(1) == '(':
		p.at += 2
		p.nested(')')
	case c == '@' && p.peekAt(1) == '{':
		p.table()
	case c == '@':
		if _, ok := p.here(); !ok {
			return false
		}
	case c == '.' && p.peekAt(1) == '.':
		p.at += 2
		return true
	case digit(c) || c == '.' && digit(p.peekAt(1)):
		n, ok := p.number()
		if !ok {
			p.incomplete()
		}
		p.at += max(n, 1)
		return true
	default:
		return false
	}
	p.members()
	return true
}
