package httpapi

import (
	"encoding/hex"

	"vogt/internal/api"
	"vogt/internal/audit"
)

func recordView(r audit.Record) api.AuditRecord {
	return api.AuditRecord{
		Index: r.Index, Type: r.Type, Time: r.Time, Body: r.Body,
		Leaf: hex.EncodeToString(r.Leaf[:]), Salt: hex.EncodeToString(r.Salt),
	}
}
