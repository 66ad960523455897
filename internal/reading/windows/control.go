package windows

import "strings"

// keyword reads a word of letters that ends as a keyword does.
func (p *powershell) keyword() string {
	end := p.at
	for end < len(p.text) && letter(p.text[end]) {
		end++
	}
	if end == p.at || end-p.at > 13 || end < len(p.text) && strings.IndexByte(" \t\r\n({;})$\"'", p.text[end]) < 0 {
		return ""
	}
	word := strings.ToLower(p.text[p.at:end])
	p.at = end
	return word
}

// control reads the statement of a keyword, after it. It returns false if the
// word is none.
func (p *powershell) control(word string) bool {
	switch word {
	case "if", "while":
		p.condition()
		p.body()
		for word == "if" && p.clause("elseif", "else") {
		}
	case "do":
		p.body()
		p.clause("while", "until")
	case "for":
		p.condition()
		p.body()
	case "foreach":
		p.space(true)
		if p.peek() != '(' {
			return false // the alias of ForEach-Object
		}
		p.forEach()
	case "switch":
		p.switches()
	case "try", "finally", "begin", "process", "end", "trap", "catch":
		return p.handler(word)
	case "function", "filter":
		p.function()
	case "return", "throw", "exit":
		p.space(false)
		if p.more() && strings.IndexByte(";}\r\n)|", p.peek()) < 0 {
			p.pipeline()
		}
	case "break", "continue":
		p.space(false)
		for letter(p.peek()) {
			p.at++
		}
	case "param":
		p.parameters()
	case "using", "class", "enum", "data", "configuration", "workflow", "inlinescript", "parallel", "sequence", "dynamicparam", "clean", "define":
		p.incomplete() // a statement that is not read
		return false
	default:
		return false
	}
	return true
}

// condition reads ( … ).
func (p *powershell) condition() {
	p.space(true)
	if p.peek() != '(' {
		p.incomplete()
		return
	}
	p.at++
	p.nested(')')
}

// body reads { … }.
func (p *powershell) body() {
	p.space(true)
	if p.peek() != '{' {
		p.incomplete()
		return
	}
	p.block()
}

// clause reads a following clause of a statement, if it is one of these. It
// reports whether another one may follow.
func (p *powershell) clause(names ...string) bool {
	from := p.at
	p.space(true)
	word := p.keyword()
	for _, name := range names {
		if word != name {
			continue
		}
		switch word {
		case "elseif":
			p.condition()
			p.body()
			return true
		case "else":
			p.body()
		default:
			p.condition()
		}
		return false
	}
	p.at = from
	return false
}

func (p *powershell) forEach() {
	p.at++
	p.space(true)
	if p.peek() != '$' || !p.variable() {
		p.incomplete()
	}
	p.space(true)
	if p.keyword() != "in" {
		p.incomplete()
	}
	p.nested(')')
	p.body()
}

// switches reads switch (value) { pattern { … } … }.
func (p *powershell) switches() {
	if !p.enter() {
		p.at = len(p.text)
		return
	}
	defer p.leave()
	for p.space(true); p.dash() > 0; p.space(true) {
		p.at += p.dash()
		if p.member() == "file" {
			p.incomplete()
		}
	}
	p.condition()
	p.space(true)
	if p.peek() != '{' {
		p.incomplete()
		return
	}
	p.at++
	p.blocks++
	defer func() { p.blocks-- }()
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
		if p.peek() == '{' {
			p.block()
		} else if _, ok := p.word(false); !ok {
			p.incomplete()
		}
		p.body()
		if p.at == from {
			p.at++
		}
	}
}

// handler reads try, catch and the like.
func (p *powershell) handler(word string) bool {
	p.space(true)
	for (word == "catch" || word == "trap") && p.peek() == '[' {
		complete := p.complete
		if !p.typeWord() {
			p.incomplete()
			return true
		}
		p.complete = complete // a type that is only compared
		p.space(true)
		if p.peek() == ',' {
			p.at++
			p.space(true)
		}
	}
	if p.peek() != '{' {
		return false
	}
	p.block()
	return true
}

// function reads a definition. Its calls are reported here; later calls of it
// by name are not, if it is certain that the name means it.
func (p *powershell) function() {
	p.space(true)
	from := p.at
	for letter(p.peek()) || digit(p.peek()) || p.peek() == '-' || p.peek() == '_' {
		p.at++
	}
	name := strings.ToLower(p.text[from:p.at])
	p.space(true)
	if p.peek() == '(' {
		p.parameters()
		p.space(true)
	}
	if name == "" || p.peek() != '{' {
		p.incomplete()
		return
	}
	certain := p.blocks == 0 && !listed(aliases, name)
	p.block()
	if !certain {
		p.incomplete()
		return
	}
	if p.functions == nil {
		p.functions = map[string]bool{}
	}
	p.functions[name] = true
}

// parameters reads ( [type] $name = value, … ).
func (p *powershell) parameters() {
	p.space(true)
	if p.peek() != '(' {
		p.incomplete()
		return
	}
	p.at++
	for {
		p.space(true)
		switch c := p.peek(); {
		case !p.more():
			p.incomplete()
			return
		case c == ')':
			p.at++
			return
		case c == ',':
			p.at++
		case c == '[':
			if !p.typeWord() {
				p.incomplete() // an attribute, which can run things
				p.at++
				p.nested(']')
			}
		case c == '$' && p.variable():
			p.space(true)
			if p.peek() == '=' {
				p.at++
				p.space(true)
				p.blocks++
				p.parameterValue()
				p.blocks--
			}
		default:
			p.incomplete()
			p.at++
		}
	}
}

// parameterValue reads the value of a parameter, up to a comma.
func (p *powershell) parameterValue() {
	for {
		p.space(false)
		if n := p.dash(); n > 0 {
			p.at += n
			continue
		}
		if !p.value() {
			return
		}
	}
}

// The names that mean a cmdlet before any function of that name does, as
// Windows PowerShell and PowerShell 7 bring them.
const aliases = ` ac asnp cat cd cfs chdir clc clear clhy cli clp cls clv cnsn compare copy cp cpi cpp curl cvpa dbp del diff dir dnsn
 ebp echo epal epcsv epsn erase etsn exsn fc fhx fl foreach ft fw gal gbp gc gcai gcb gci gcim gcls gcm gcs gdr gerr ghy gi gin gjb gl
 gm gmo gp gps gpv group gsn gsnp gsv gtz gu gv gwmi h history icim icm iex ihy ii inmo ipal ipcsv ipmo ipsn irm ise iwmi iwr kill lp
 ls man md measure mi mount move mp mv nal ncim ncms ncso ndr ni nmo npssc nsn nv nwsn ogv oh oss pbcfg popd ps pumo pushd pwd r rbp rcie
 rcim rcjb rcms rcsn rd rdr ren ri rjb rm rmdir rmo rni rnp rp rsn rsnp rtcim rujb rv rvpa rwmi sajb sal saps sasv sbp sc scb scim select
 set shcm shtz si sl sleep sls sort sp spjb spps spsv start stz sujb sv swmi tee tnc trcm type upcfg upmo wget where wjb write `
