// Package client speaks to the authority for vogt: it keeps logins, asks for
// grants, waits, redeems permissions, and believes nothing that it can check.
//
// It owns the HTTP exchange with its limits, the identities of a home folder
// (auth.json and keys), the renewal of tokens, the verification of grant
// tokens, the pinned keys and the memory of the audit log's checkpoints, and
// the outbox of outcomes that could not be delivered. It leaves out what is
// shown to people, exit codes, and the execution of anything.
package client
