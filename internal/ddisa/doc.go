// Package ddisa finds out what domains say of themselves, as DDISA Core defines it:
// which authority speaks for the people of a mail domain (a TXT record in the DNS),
// and what a service is that calls itself by its domain (its client metadata).
//
// It owns the form of records and metadata, what of them counts, and for how long it
// is remembered. Records are asked for with the machine's own resolver first, and by
// HTTPS where that fails. Documents are fetched by package fetch, which guards where
// they may lie.
//
// It decides nothing about people: what a domain's mode means for a login, who
// consented, and which authority a person trusts is the business of its callers. What
// it says of a domain is worth what the DNS is worth, which is not signed here.
package ddisa
