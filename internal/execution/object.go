package execution

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vogt/internal/statement"
)

// identity tells one file of this machine from every other.
type identity struct {
	device, inode uint64
}

// object is a program or interpreter as it was found.
type object struct {
	found  string // absolute path that was looked up
	real   string // the same without symbolic links
	file   *os.File
	id     identity
	size   int64
	digest string // hex SHA-256; empty when the file may be executed but not read
}

// openObject opens the executable at path, which is absolute.
func openObject(path string) (object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return object{}, notThere(path, err)
	}
	// A device or FIFO must not even be opened.
	if err := executable(path, info); err != nil {
		return object{}, err
	}
	file, readable, err := openImage(path)
	if err != nil {
		return object{}, &Error{Kind: Unexecutable, Path: path, Err: cause(err)}
	}
	o := object{found: path, file: file}
	if err := o.measure(readable); err != nil {
		file.Close()
		return object{}, err
	}
	if o.real, err = filepath.EvalSymlinks(path); err != nil {
		file.Close()
		return object{}, notThere(path, err)
	}
	return o, nil
}

// measure records what the open file is.
func (o *object) measure(readable bool) error {
	info, err := o.file.Stat()
	if err == nil {
		o.id, err = identify(o.file, info)
	}
	if err != nil {
		return &Error{Kind: Unexecutable, Path: o.found, Err: cause(err)}
	}
	if !info.Mode().IsRegular() {
		return &Error{Kind: Changed, Path: o.found}
	}
	o.size = info.Size()
	if !readable {
		return nil
	}
	if o.digest, err = digest(o.file); err != nil {
		return &Error{Kind: Unexecutable, Path: o.found, Err: cause(err)}
	}
	return nil
}

// unchanged checks that the path still leads to the file that is open, and
// that its content is what was recorded. An open descriptor keeps the file, not
// its content, so the content is read again.
func (o object) unchanged() error {
	changed := &Error{Kind: Changed, Path: o.found}
	info, err := os.Stat(o.found)
	if err != nil {
		return notThere(o.found, err)
	}
	now := object{found: o.found, file: o.file}
	if err := now.measure(o.digest != ""); err != nil {
		return err
	}
	open, err := o.file.Stat()
	if err != nil {
		return &Error{Kind: Unexecutable, Path: o.found, Err: cause(err)}
	}
	if !os.SameFile(info, open) || now.id != o.id || now.size != o.size || now.digest != o.digest {
		return changed
	}
	return executable(o.found, info)
}

func (o object) statement() statement.File {
	size := uint64(o.size)
	f := statement.File{Path: &o.real, Device: &o.id.device, Inode: &o.id.inode, Size: &size}
	if o.digest != "" {
		f.SHA256 = &o.digest
	}
	return f
}

// head returns the first bytes, as many as the kernel looks at for a #! line.
func (o object) head() ([]byte, error) {
	if o.digest == "" {
		return nil, nil
	}
	buf := make([]byte, headSize)
	n, err := o.file.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &Error{Kind: Unexecutable, Path: o.found, Err: cause(err)}
	}
	return buf[:n], nil
}

// digest hashes an open file from its beginning, whatever its offset is.
func digest(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// folder is a working directory.
type folder struct {
	path string
	id   identity
}

// openFolder records the folder at path, or the one the process is in.
func openFolder(path string) (folder, error) {
	if path == "" {
		var err error
		if path, err = os.Getwd(); err != nil {
			return folder{}, &Error{Kind: NoFolder, Err: cause(err)}
		}
	}
	if !filepath.IsAbs(path) {
		return folder{}, &Error{Kind: NoFolder, Path: path}
	}
	id, err := identifyFolder(path)
	if err != nil {
		return folder{}, err
	}
	return folder{path: path, id: id}, nil
}

func (d folder) unchanged() error {
	id, err := identifyFolder(d.path)
	if err != nil {
		return err
	}
	if id != d.id {
		return &Error{Kind: Changed, Path: d.path}
	}
	return nil
}

// current reports whether the process is in d, so that a child starts there
// without a change of directory that could be led elsewhere.
func (d folder) current() bool {
	id, err := identifyFolder(".")
	return err == nil && id == d.id
}

func (d folder) statement() statement.File {
	return statement.File{Path: &d.path, Device: &d.id.device, Inode: &d.id.inode}
}

func noFolder(path string, err error) error {
	return &Error{Kind: NoFolder, Path: path, Err: cause(err)}
}

func notThere(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{Kind: NotFound, Path: path}
	}
	return &Error{Kind: Unexecutable, Path: path, Err: cause(err)}
}

// cause strips operation and path, which the message already has.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
