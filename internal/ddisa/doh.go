package ddisa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"vogt/internal/fetch"
)

// maxAliases bounds how many CNAME records lead to an answer.
const maxAliases = 8

// Numbers of the DNS: RFC 1035, sections 3.2.2 and 4.1.1.
const (
	typeCNAME = 5
	typeTXT   = 16

	codeNoError  = 0
	codeNotFound = 3
)

// jsonAnswer is what resolvers answer as application/dns-json, which no RFC defines:
// Google's and Cloudflare's descriptions of it agree on these members.
type jsonAnswer struct {
	Status *int `json:"Status"`
	TC     bool `json:"TC"`
	Answer []struct {
		Name string `json:"name"`
		Type int    `json:"type"`
		Data string `json:"data"`
	} `json:"Answer"`
}

// overHTTPS asks a resolver for the TXT records at a name. None is no error.
func overHTTPS(ctx context.Context, client *fetch.Client, provider, name string) ([]string, error) {
	separator := "?"
	if strings.Contains(provider, "?") {
		separator = "&"
	}
	doc, err := client.Get(ctx, fetch.Request{
		URL:   provider + separator + url.Values{"name": {name}, "type": {"TXT"}}.Encode(),
		Types: []string{"application/dns-json", "application/json"},
	})
	if err != nil {
		return nil, err
	}
	texts, err := readAnswer(doc.Body, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", provider, err)
	}
	return texts, nil
}

func readAnswer(body []byte, name string) ([]string, error) {
	var a jsonAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, errors.New("the answer is no JSON of a resolver")
	}
	switch {
	case a.Status == nil:
		return nil, errors.New("the answer has no status")
	case *a.Status == codeNotFound:
		return nil, nil
	case *a.Status != codeNoError:
		return nil, fmt.Errorf("the resolver answers with code %d", *a.Status)
	case a.TC:
		return nil, errors.New("the answer is not complete")
	}
	// What is said of other names is not asked for; aliases lead from one to the next.
	at := dnsName(name)
	for range maxAliases {
		var texts []string
		alias := ""
		for _, r := range a.Answer {
			switch {
			case dnsName(r.Name) != at:
			case r.Type == typeTXT:
				text, err := unquote(r.Data)
				if err != nil {
					return nil, err
				}
				texts = append(texts, text)
			case r.Type == typeCNAME:
				alias = dnsName(r.Data)
			}
		}
		if len(texts) > 0 || alias == "" {
			return texts, nil
		}
		at = alias
	}
	return nil, errors.New("the aliases of the name do not end")
}

// dnsName is a name in the form that is compared: ASCII letters have no case.
func dnsName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// unquote joins the strings of a TXT record, which stand in quotes as in a zone file
// (RFC 1035, section 5.1); some resolvers give a single one without.
func unquote(data string) (string, error) {
	if !strings.HasPrefix(data, `"`) {
		return data, nil
	}
	var b strings.Builder
	for data != "" {
		if data[0] == ' ' || data[0] == '\t' {
			data = data[1:]
			continue
		}
		if data[0] != '"' {
			return "", errors.New("the quotes of a record do not match")
		}
		rest, err := quoted(data[1:], &b)
		if err != nil {
			return "", err
		}
		data = rest
	}
	return b.String(), nil
}

// quoted reads up to the next quote and returns what follows it.
func quoted(data string, b *strings.Builder) (string, error) {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return data[i+1:], nil
		case c != '\\':
			b.WriteByte(c)
		case i+3 < len(data) && decimal(data[i+1:i+4]) <= 255:
			b.WriteByte(byte(decimal(data[i+1 : i+4])))
			i += 3
		case i+1 < len(data):
			i++
			b.WriteByte(data[i])
		}
	}
	return "", errors.New("the quotes of a record do not match")
}

// decimal is the value of three digits, or more than a byte holds.
func decimal(digits string) int {
	n := 0
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 1000
		}
		n = n*10 + int(digits[i]-'0')
	}
	return n
}
