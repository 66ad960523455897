package pages

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// clockTime writes the time of day.
func (f *formatter) clockTime(t time.Time) template.HTML {
	return f.element(t, "clock", t.In(f.zone).Format("15:04"))
}

// moment writes the time of day, with the date unless it is today.
func (f *formatter) moment(t time.Time) (template.HTML, error) {
	t = t.In(f.zone)
	now := f.now.In(f.zone)
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return f.element(t, "clock", t.Format("15:04")), nil
	}
	key := "date.full"
	if t.Year() != now.Year() {
		key = "date.year"
	}
	text, err := f.text(key, "weekday", f.weekdays[t.Weekday()], "day", t.Day(),
		"month", f.months[t.Month()-1], "year", t.Year(), "time", t.Format("15:04"))
	return f.element(t, "full", string(text)), err
}

// element carries the exact time, so that the script can write it in the
// browser's own zone where that is another one.
func (f *formatter) element(t time.Time, form, text string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-f="%s">%s</time>`,
		t.In(f.zone).Format("2006-01-02T15:04:05-07:00"), form, text))
}

// span writes a duration in its largest fitting unit.
func (f *formatter) span(d time.Duration) (template.HTML, error) {
	switch {
	case d < 2*time.Minute:
		return f.count("span.seconds", int64(max(d, 0)/time.Second))
	case d < 2*time.Hour && d%time.Hour != 0 || d < time.Hour:
		return f.count("span.minutes", int64(d/time.Minute))
	case d < 48*time.Hour:
		return f.count("span.hours", int64(d/time.Hour))
	}
	return f.count("span.days", int64(d/(24*time.Hour)))
}

// formatter writes values in one language at one moment.
type formatter struct {
	*language
	now  time.Time
	zone *time.Location
}

// remaining is the ring of a waiting card: text and the filled part of 44.
type remaining struct {
	Text  template.HTML
	Until int64 // unix milliseconds
	Total int64 // milliseconds from creation to the end
	Dash  string
	Soon  bool
}

const (
	ringLength = 44.0
	soon       = 5 * time.Minute
)

func (f *formatter) remaining(created, until time.Time) (remaining, error) {
	left, total := max(until.Sub(f.now), 0), max(until.Sub(created), 1)
	r := remaining{Until: until.UnixMilli(), Total: total.Milliseconds(), Soon: left < soon}
	r.Dash = strings.TrimSuffix(fmt.Sprintf("%.1f", ringLength*float64(left)/float64(total)), ".0") + " 44"
	key, n := "js.left.minutes", int64((left+time.Minute-1)/time.Minute)
	if left < time.Minute {
		key, n = "js.left.seconds", int64(left/time.Second)
	} else if left > 2*time.Hour {
		key, n = "js.left.hours", int64(left/time.Hour)
	}
	var err error
	r.Text, err = f.text(key, "n", n)
	return r, err
}
