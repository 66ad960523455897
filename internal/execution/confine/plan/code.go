package plan

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// coder writes or reads values one after the other. Texts hold any bytes, as names
// of files do, and a reader needs no description of what comes: decoding JSON takes
// a new process longer than many a mount.
type coder struct {
	data    []byte // what was written, or what is left to read
	reading bool
	err     error // the first one, of reading
}

var errShort = errors.New("it ends too early")

// frame returns what a coder writes, after its length.
func frame(code func(*coder)) ([]byte, error) {
	c := &coder{data: make([]byte, 4, 4<<10)}
	code(c)
	size := len(c.data) - 4
	if size > MaxSize {
		return nil, fmt.Errorf("the plan of the box has %d bytes, the limit is %d: list fewer paths", size, MaxSize)
	}
	binary.LittleEndian.PutUint32(c.data, uint32(size))
	return c.data, nil
}

// unframe lets a coder read what frame has returned, all of it.
func unframe(r io.Reader, code func(*coder)) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > MaxSize {
		return fmt.Errorf("it has %d bytes, the limit is %d", n, MaxSize)
	}
	c := &coder{data: make([]byte, n), reading: true}
	if _, err := io.ReadFull(r, c.data); err != nil {
		return err
	}
	code(c)
	if c.err == nil && len(c.data) > 0 {
		c.err = errors.New("more follows than belongs to it")
	}
	return c.err
}

func (c *coder) word(n *uint64) {
	switch {
	case !c.reading:
		c.data = binary.AppendUvarint(c.data, *n)
	case c.err == nil:
		value, size := binary.Uvarint(c.data)
		if size <= 0 {
			c.err = errShort
			return
		}
		*n, c.data = value, c.data[size:]
	}
}

func (c *coder) number(n *int64) {
	word := uint64(*n)
	c.word(&word)
	*n = int64(word)
}

func (c *coder) integer(n *int) {
	number := int64(*n)
	c.number(&number)
	*n = int(number)
}

func (c *coder) truth(b *bool) {
	var word uint64
	if *b {
		word = 1
	}
	c.word(&word)
	*b = word != 0
}

func (c *coder) text(s *string) {
	size := uint64(len(*s))
	c.word(&size)
	switch {
	case !c.reading:
		c.data = append(c.data, *s...)
	case c.err == nil && size > uint64(len(c.data)):
		c.err = errShort
	case c.err == nil:
		*s, c.data = string(c.data[:size]), c.data[size:]
	}
}

func (c *coder) bytes(b *[]byte) {
	text := string(*b)
	c.text(&text)
	if c.reading && len(text) > 0 {
		*b = []byte(text)
	}
}

func (c *coder) texts(list *[]string) { each(c, list, c.text) }

// each puts a list through a coder, entry by entry.
func each[T any](c *coder, list *[]T, entry func(*T)) {
	size := uint64(len(*list))
	c.word(&size)
	if !c.reading {
		for i := range *list {
			entry(&(*list)[i])
		}
		return
	}
	*list = nil
	for ; size > 0 && c.err == nil; size-- {
		var value T
		entry(&value)
		*list = append(*list, value)
	}
}

// table puts a table through a coder, sorted by its keys.
func table[K cmp.Ordered, V any](c *coder, m *map[K]V, key func(*K), value func(*V)) {
	keys := slices.Sorted(maps.Keys(*m))
	if c.reading {
		*m = nil
	}
	each(c, &keys, func(k *K) {
		key(k)
		v := (*m)[*k]
		value(&v)
		if c.reading {
			if *m == nil {
				*m = map[K]V{}
			}
			(*m)[*k] = v
		}
	})
}
