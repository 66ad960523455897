package egress

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"vogt/internal/inet"
)

// Reason says why a connection was refused, or cut. Its text is a word for
// programs.
type Reason int

// The reasons. NoReason is a connection that ended by itself.
const (
	NoReason Reason = iota

	// What the client sent cannot be read, or could be read in two ways.
	BadProtocol
	BadRequest
	BadScheme
	TooLarge
	TooSlow
	BadAuth
	BadCommand
	BadAddressType
	BadHost
	NoCredential
	NoName
	TooManyNames

	// The policy, or a person.
	NotGranted
	DeniedByRule
	Denied
	Unanswered
	TooManyQuestions
	NeverAsked
	RefusedAddress
	RequestBudget
	UploadBudget
	NotInspected
	RequestNotPermitted

	// The other side.
	CannotResolve
	CannotConnect
	BadResponse
	BadCertificate

	// What was sent into a tunnel.
	NoTLS
	BrokenTLS
	NoServerName
	OtherServerName
	NoSSH
	NotTrusted

	// The end.
	Idle
	TooLong
	GrantEnded
	ClientGone
	NotRecorded
	ShuttingDown
	lastReason
)

// meaning is what is told about a reason. The remedy says who can change it and
// how.
type meaning struct {
	word         string
	status       int
	socks        byte
	text, remedy string
}

const (
	askOwner = "Ask the owner of this agent for a rule that grants this host."
	askAgain = "Ask again when somebody can answer."
	fixTools = "Use a program that sends what the standards describe."
)

// meanings has a row for each reason.
var meanings = [lastReason]meaning{
	NoReason:       {"none", http.StatusOK, socksDone, "nothing was refused", ""},
	BadProtocol:    {"protocol", http.StatusBadRequest, socksFailed, "this port speaks HTTP/1.1 as a proxy and SOCKS5", "Set HTTP_PROXY and HTTPS_PROXY to http:// and this address, or ALL_PROXY to socks5h:// and this address."},
	BadRequest:     {"request", http.StatusBadRequest, socksFailed, "the request is malformed or ambiguous", fixTools},
	BadScheme:      {"scheme", http.StatusBadRequest, socksFailed, "a proxy takes CONNECT host:port, and requests for http:// addresses", "Use CONNECT for everything but http:// addresses."},
	TooLarge:       {"too-large", http.StatusRequestHeaderFieldsTooLarge, socksFailed, "the head of the request is too large", "Send fewer or shorter header fields."},
	TooSlow:        {"too-slow", http.StatusRequestTimeout, socksFailed, "the request did not arrive in time", "Send it at once."},
	BadAuth:        {"authentication", http.StatusBadRequest, socksFailed, "this proxy knows its clients without a name and password", "Leave out the user name and password."},
	BadCommand:     {"command", http.StatusBadRequest, socksNoCommand, "of SOCKS5 only CONNECT is served", "There is no way for UDP or for incoming connections; HTTP/3 falls back to HTTP/2."},
	BadAddressType: {"address-type", http.StatusBadRequest, socksNoAddress, "the type of address is not known", fixTools},
	BadHost:        {"host", http.StatusForbidden, socksRefused, "the host is neither a plain name nor an address in its usual form", "Write the name in letters, digits, hyphens and dots."},

	NoCredential: {"credential", http.StatusProxyAuthRequired, socksRefused, "this proxy belongs to one program and what it starts, and the credential is not theirs", "Use the address in HTTP_PROXY as it stands, with the name and password in it."},

	NoName:       {"no-name", http.StatusForbidden, socksRefused, "the address stands for no name", "Connect to hosts by their names."},
	TooManyNames: {"too-many-names", http.StatusForbidden, socksRefused, "this session has asked for as many names as it may", "Use the proxy, which needs no addresses for names."},

	NotGranted:       {"not-granted", http.StatusForbidden, socksRefused, "no rule grants this host and port", askOwner},
	DeniedByRule:     {"denied-by-rule", http.StatusForbidden, socksRefused, "a rule denies this host", "Only the owner of this agent can change the rule."},
	Denied:           {"denied", http.StatusForbidden, socksRefused, "a person was asked and refused", "Do without this host; asking again at once gets the same answer."},
	Unanswered:       {"unanswered", http.StatusForbidden, socksRefused, "a person was asked and did not answer in time", askAgain},
	TooManyQuestions: {"too-many-questions", http.StatusForbidden, socksRefused, "too many hosts wait for a person's answer already", "Wait until the others are answered."},
	NeverAsked:       {"never-asked", http.StatusForbidden, socksRefused, "nobody is asked about this host: it resolves names for anybody, or belongs to this machine or its network", "Only a rule that names the host can grant it."},
	RefusedAddress:   {"address", http.StatusForbidden, socksRefused, "the name leads to an address that is not public, or not the rule's", "Only a rule that names the host and its network can grant it."},
	RequestBudget:    {"request-budget", http.StatusForbidden, socksRefused, "this session has made as many requests as it may", "The owner of this agent can raise the limit."},
	UploadBudget:     {"upload-budget", http.StatusForbidden, socksRefused, "this session has sent as many bytes as it may", "The owner of this agent can raise the limit, or give this host a budget of its own."},

	NotInspected:        {"not-inspected", http.StatusForbidden, socksRefused, "requests to this host are looked at, and in this way they could not be", "Use https:// at the port that the rule grants."},
	RequestNotPermitted: {"request-not-permitted", http.StatusForbidden, socksRefused, "the rule of this host does not permit this method and path", "Ask the owner of this agent for a rule that permits the request."},

	CannotResolve:  {"resolve", http.StatusBadGateway, socksNoHost, "the name has no address", "Check the name."},
	CannotConnect:  {"connect", http.StatusBadGateway, socksNoConnect, "the host does not accept the connection", "Check host and port, or try later."},
	BadResponse:    {"response", http.StatusBadGateway, socksFailed, "the host's answer is no HTTP/1.1 response", "Check whether that port serves plain HTTP."},
	BadCertificate: {"certificate", http.StatusBadGateway, socksNoConnect, "the host shows no valid certificate for its name", "Tell the owner of this agent; somebody may stand between."},

	NoTLS:           {"no-tls", http.StatusForbidden, socksRefused, "a tunnel to this port carries TLS, and something else was sent", askOwner},
	BrokenTLS:       {"broken-tls", http.StatusForbidden, socksRefused, "the ClientHello is malformed or too long", fixTools},
	NoServerName:    {"no-server-name", http.StatusForbidden, socksRefused, "the ClientHello names no server", "Send the host's name in the TLS handshake (SNI)."},
	OtherServerName: {"other-server-name", http.StatusForbidden, socksRefused, "the ClientHello names another server than the one that was granted", "Connect to the name that is meant; switch off Encrypted ClientHello."},
	NoSSH:           {"no-ssh", http.StatusForbidden, socksRefused, "a tunnel to this port carries SSH, and something else was sent", askOwner},

	NotTrusted: {"not-trusted", http.StatusForbidden, socksRefused, "the client does not trust the session's certificate, or speaks no HTTP/1.1", "Have the program trust the file that SSL_CERT_FILE names; use HTTP/1.1."},

	Idle:         {"idle", http.StatusGatewayTimeout, socksFailed, "nothing was sent for too long", "Connect again."},
	TooLong:      {"too-long", http.StatusGatewayTimeout, socksFailed, "the connection lasted too long", "Connect again."},
	GrantEnded:   {"grant-ended", http.StatusForbidden, socksRefused, "the permission for this host has ended", askOwner},
	ClientGone:   {"client-gone", http.StatusRequestTimeout, socksFailed, "the client went away", ""},
	NotRecorded:  {"not-recorded", http.StatusServiceUnavailable, socksFailed, "the connection could not be recorded, so it was not made", "Look at the log of the authority, or of the program that runs this proxy."},
	ShuttingDown: {"shutting-down", http.StatusServiceUnavailable, socksFailed, "the session ends", ""},
}

func (r Reason) meaning() meaning {
	if r < 0 || r >= lastReason {
		return meanings[BadRequest]
	}
	return meanings[r]
}

// String returns the word for programs.
func (r Reason) String() string { return r.meaning().word }

// refusal is a reason with what is particular to the case. As an error it is
// also the cause for which a connection is cut.
type refusal struct {
	reason Reason
	class  inet.Class // of an address that was refused
	detail string     // says more than the reason; holds no text of the client's
}

func refuse(reason Reason) *refusal { return &refusal{reason: reason} }

func refuseFor(reason Reason, err error) *refusal {
	return &refusal{reason: reason, detail: err.Error()}
}

func (r *refusal) Error() string {
	text := r.reason.meaning().text
	if r.class != inet.Unknown {
		text += " (" + r.class.String() + ")"
	}
	if r.detail != "" {
		text += ": " + r.detail
	}
	return text
}

// refusedHeader carries the reason's word in answers of the proxy, and only in
// those: an answer of a host loses it.
const refusedHeader = "Vogt-Refused"

// problem is the body of a refusal, a problem document as in RFC 9457.
type problem struct {
	Type         string `json:"type"`
	Title        string `json:"title"`
	Status       int    `json:"status"`
	Detail       string `json:"detail"`
	Reason       string `json:"reason"`
	Remedy       string `json:"remedy,omitempty"`
	Host         string `json:"host,omitempty"`
	Port         uint16 `json:"port,omitempty"`
	AddressClass string `json:"address_class,omitempty"`
}

// writeHTTP writes the refusal as a whole response.
func (r *refusal) writeHTTP(w io.Writer, t target) error {
	m := r.reason.meaning()
	p := problem{
		Type: "about:blank", Title: http.StatusText(m.status), Status: m.status,
		Detail: r.Error(), Reason: m.word, Remedy: m.remedy, Host: t.host.String(), Port: t.port,
	}
	if r.class != inet.Unknown {
		p.AddressClass = r.class.String()
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	challenge := ""
	if m.status == http.StatusProxyAuthRequired {
		challenge = "Proxy-Authenticate: Basic realm=\"vogt proxy\"\r\n"
	}
	_, err = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n"+challenge+"%s: %s\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s",
		m.status, http.StatusText(m.status), refusedHeader, m.word, strconv.Itoa(len(body)), body)
	return err
}
