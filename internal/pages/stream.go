package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// stream sends events until the browser leaves or the backend ends the
// subscription. The first message and every heartbeat tell the server's time;
// each heartbeat looks whether the session still stands.
func (s *server) stream(v *visit) {
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	events, err := s.backend.Events.Subscribe(ctx, v.session, v.Header.Get("Last-Event-ID"))
	if err != nil {
		s.problem(v, err)
		return
	}
	out := http.NewResponseController(v.w)
	if err := out.SetWriteDeadline(time.Time{}); err != nil {
		s.cfg.Logger.Debug("pages: event stream keeps the server's write deadline", "error", err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	send := func(lines string) bool {
		_, err := fmt.Fprint(v.w, lines, "\n")
		return err == nil && out.Flush() == nil
	}
	alive := func() string {
		return fmt.Sprintf("event: alive\ndata: {\"now\":%d}\n", s.cfg.Clock().UnixMilli())
	}
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for ok := send("retry: 1500\n" + alive()); ok; {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			ok = send(grantEvent(e))
		case <-beat.C:
			if _, err := s.backend.Sessions.Session(ctx, v.cookie); err != nil {
				send("event: ended\ndata: {}\n")
				return
			}
			ok = send(alive())
		case <-ctx.Done():
			return
		}
	}
}

func grantEvent(e Event) string {
	data, err := json.Marshal(struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}{e.Grant, string(e.Status)})
	if err != nil || strings.ContainsAny(e.ID, "\r\n\x00") {
		// An event that cannot be written still makes the page look again.
		return "event: grant\ndata: {}\n"
	}
	return fmt.Sprintf("id: %s\nevent: grant\ndata: %s\n", e.ID, data)
}
