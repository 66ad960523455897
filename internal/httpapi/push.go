package httpapi

import (
	"net/http"

	"vogt/internal/authority"
	"vogt/internal/push"
	"vogt/internal/store"
)

// Push is how browsers are told of requests; without a public key they are not.
type Push struct {
	Public   string   // base64url, for the browser to subscribe with
	Hosts    []string // push services that may be called
	Language func(accept string) string
}

func (s *server) pushRoutes() {
	s.bySession("GET /api/push/vapid", vapid, about{says: "What browsers subscribe to notifications with (RFC 8292).", gives: vapidKey{}})
	s.bySession("POST /api/push/subscribe", subscribe, about{says: "Has this browser told of requests.", takes: subscriptionBody{}, status: http.StatusCreated, gives: done{}})
	s.bySession("DELETE /api/push/subscribe", unsubscribe, about{says: "No longer.", takes: subscriptionBody{}, gives: done{}})
}

type vapidKey struct {
	Public string `json:"vapidPublicKey"`
}

func (c *call) pushOn() error {
	if c.s.Push.Public != "" {
		return nil
	}
	return &authority.Error{
		Status: 503, Title: "This authority sends no push messages", Detail: "No push service is allowed.",
		Hint: "Its operator names them in push.hosts, in vogtd.toml.",
	}
}

func vapid(c *call) error {
	if err := c.pushOn(); err != nil {
		return err
	}
	return c.ok(http.StatusOK, vapidKey{c.s.Push.Public})
}

// subscriptionBody is a PushSubscription as browsers serialise it (Push API,
// PushSubscriptionJSON), bare or as the member "subscription".
type subscriptionBody struct {
	Endpoint string `json:"endpoint"`
	Keys     struct {
		P256dh string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`
}

func (c *call) subscription() (subscriptionBody, error) {
	var in struct {
		subscriptionBody
		Nested *subscriptionBody `json:"subscription"`
	}
	if err := c.body(&in); err != nil {
		return in.subscriptionBody, err
	}
	if in.Nested != nil {
		return *in.Nested, nil
	}
	return in.subscriptionBody, nil
}

func subscribe(c *call) error {
	if err := c.pushOn(); err != nil {
		return err
	}
	in, err := c.subscription()
	if err != nil {
		return err
	}
	if err := push.CheckEndpoint(in.Endpoint, c.s.Push.Hosts); err != nil {
		return &authority.Error{
			Status: 400, Title: "The push address cannot be used", Detail: "It was refused: " + err.Error() + ".",
			Hint: "The operator allows further push services with push.hosts, in vogtd.toml.",
		}
	}
	if err := push.CheckKeys(in.Keys.P256dh, in.Keys.Auth); err != nil {
		return &authority.Error{Status: 400, Title: "The keys of the subscription cannot be used", Detail: err.Error() + "."}
	}
	language := ""
	if c.s.Push.Language != nil {
		language = c.s.Push.Language(c.Request.Header.Get("Accept-Language"))
	}
	err = c.s.Authority.Subscribe(c.Context(), c.actor, store.Subscription{
		Endpoint: in.Endpoint, P256dh: in.Keys.P256dh, Auth: in.Keys.Auth, Language: language,
	})
	if err != nil {
		return err
	}
	return c.ok(http.StatusCreated, map[string]bool{"ok": true})
}

func unsubscribe(c *call) error {
	in, err := c.subscription()
	if err != nil {
		return err
	}
	if err := c.s.Authority.Unsubscribe(c.Context(), c.actor, in.Endpoint); err != nil {
		return err
	}
	return ok(c)
}
