package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// step is what a model asks for in one turn. Without a tool it is the last word.
type step struct {
	tool string
	args map[string]any
	text string // instead of args, for tools that take text
}

// model is a service that agents' programs talk to as to a real one: the messages
// of Anthropic, responses and chat completions of OpenAI, and Gemini's. It follows
// a list of steps; which is next is read from the request, so that requests which
// are made on the side (for titles, say) shift nothing.
type model struct {
	mu    sync.Mutex
	steps []step
	seen  []string // bodies of requests, and "GET /path" of others
}

func (m *model) follow(steps []step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps, m.seen = steps, nil
}

// requests are what has been asked since the list of steps was set.
func (m *model) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.seen...)
}

var callNumber = regexp.MustCompile(`call_t(\d+)`)

// next is the step that a request is to be answered with.
func (m *model) next(body map[string]any, raw string) (int, step) {
	if body["tools"] == nil && !strings.Contains(raw, "additional_tools") {
		return 0, step{}
	}
	n := 0
	if contents, ok := body["contents"].([]any); ok { // Gemini's have no numbers
		text, _ := json.Marshal(contents)
		n = strings.Count(string(text), `"functionCall":`)
	} else {
		for _, found := range callNumber.FindAllStringSubmatch(raw, -1) {
			if i, err := strconv.Atoi(found[1]); err == nil {
				n = max(n, i+1)
			}
		}
	}
	if n < len(m.steps) {
		return n, m.steps[n]
	}
	return n, step{}
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	raw := string(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method != http.MethodPost {
		m.seen = append(m.seen, r.Method+" "+r.URL.Path)
		fmt.Fprint(w, `{"data":[],"models":[],"object":"list"}`)
		return
	}
	m.seen = append(m.seen, raw)
	var body map[string]any
	if json.Unmarshal(data, &body) != nil {
		body = map[string]any{}
	}
	turn, s := m.next(body, raw)
	id := "call_t" + strconv.Itoa(turn)
	stream, _ := body["stream"].(bool)
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "count_tokens"), strings.HasSuffix(path, ":countTokens"):
		fmt.Fprint(w, `{"input_tokens":10,"totalTokens":10}`)
	case strings.HasSuffix(path, "/messages"):
		events(w, stream, s.messages(id, body["model"]))
	case strings.HasSuffix(path, "/responses"):
		events(w, stream, s.responses(id, body["model"]))
	case strings.HasSuffix(path, "/chat/completions"):
		events(w, stream, s.completions(id, body["model"]))
	case strings.Contains(path, "enerateContent"):
		events(w, strings.Contains(path, "stream"), s.content(id))
	default:
		fmt.Fprint(w, `{}`)
	}
}

type object = map[string]any

// events sends a stream of events, or the whole answer, which is the first of all.
func events(w http.ResponseWriter, stream bool, all []object) {
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all[0])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all[1:] {
		if kind, ok := e["type"].(string); ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		data, _ := json.Marshal(e)
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	if all[1]["object"] == "chat.completion.chunk" {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func (s step) argument() string {
	data, _ := json.Marshal(s.args)
	return string(data)
}

// lastWord is one word, since programs move the cursor between words.
const lastWord = "all-is-done"

func (s step) messages(id string, name any) []object {
	block, start, stop := object{"type": "text", "text": lastWord}, object{"type": "text", "text": ""}, "end_turn"
	delta := object{"type": "text_delta", "text": lastWord}
	if s.tool != "" {
		block = object{"type": "tool_use", "id": id, "name": s.tool, "input": s.args}
		start, stop = object{"type": "tool_use", "id": id, "name": s.tool, "input": object{}}, "tool_use"
		delta = object{"type": "input_json_delta", "partial_json": s.argument()}
	}
	message := func(content []object, stop any) object {
		return object{"id": "msg_" + id, "type": "message", "role": "assistant", "model": name, "content": content, "stop_reason": stop, "stop_sequence": nil, "usage": object{"input_tokens": 10, "output_tokens": 5}}
	}
	return []object{
		message([]object{block}, stop),
		{"type": "message_start", "message": message([]object{}, nil)},
		{"type": "content_block_start", "index": 0, "content_block": start},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 5}},
		{"type": "message_stop"},
	}
}

func (s step) responses(id string, name any) []object {
	item := object{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed", "content": []object{{"type": "output_text", "text": lastWord, "annotations": []any{}}}}
	switch {
	case s.text != "":
		item = object{"type": "custom_tool_call", "id": "ctc_" + id, "call_id": id, "name": s.tool, "input": s.text, "status": "completed"}
	case s.tool != "":
		item = object{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": s.tool, "arguments": s.argument(), "status": "completed"}
	}
	response := func(status string, output []object) object {
		return object{"id": "resp_" + id, "object": "response", "created_at": 1, "status": status, "model": name, "output": output,
			"usage": object{"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15}}
	}
	done := response("completed", []object{item})
	return []object{
		done,
		{"type": "response.created", "sequence_number": 0, "response": response("in_progress", []object{})},
		{"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
		{"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
		{"type": "response.completed", "sequence_number": 3, "response": done},
	}
}

func (s step) completions(id string, name any) []object {
	message, reason := object{"role": "assistant", "content": lastWord}, "stop"
	if s.tool != "" {
		message = object{"role": "assistant", "content": nil, "tool_calls": []object{{"index": 0, "id": id, "type": "function", "function": object{"name": s.tool, "arguments": s.argument()}}}}
		reason = "tool_calls"
	}
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	chunk := func(delta object, reason any) object {
		return object{"id": "cc_" + id, "created": 1, "model": name, "object": "chat.completion.chunk", "choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}}}
	}
	return []object{
		{"id": "cc_" + id, "created": 1, "model": name, "object": "chat.completion", "choices": []object{{"index": 0, "message": message, "finish_reason": reason}}, "usage": usage},
		chunk(message, nil), chunk(object{}, reason),
		{"id": "cc_" + id, "created": 1, "model": name, "object": "chat.completion.chunk", "choices": []object{}, "usage": usage},
	}
}

func (s step) content(id string) []object {
	part := object{"text": lastWord}
	if s.tool != "" {
		part = object{"functionCall": object{"id": id, "name": s.tool, "args": s.args}, "thoughtSignature": "c2ln"}
	}
	answer := object{"candidates": []object{{"content": object{"role": "model", "parts": []object{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}, "modelVersion": "m"}
	return []object{answer, answer}
}
