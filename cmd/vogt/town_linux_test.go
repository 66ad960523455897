package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A public host for tests: a proxy refuses what is on this machine, as it must. So
// the tests run in a network of their own, in which all addresses of a block that
// is public elsewhere end here without being addresses of an interface, and where
// the file of hosts has the name.
const (
	publicHost    = "model.example"
	publicAddress = "93.184.216.34"
	publicPort    = 8443
	wellKnown     = "1.1.1.1" // where names are asked for, too
)

// townVariable is set in the process that has this network.
const townVariable = "VOGT_TEST_TOWN"

// inTown runs the calling test in such a network, in a process of its own, and
// reports whether this is that process.
func inTown(t *testing.T) bool {
	t.Helper()
	if os.Getenv(townVariable) != "" {
		if err := settle(t.TempDir()); err != nil {
			t.Fatalf("make a network: %v", err)
		}
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), townVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		a := cmd.SysProcAttr
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("in a network of its own: %v", err)
	}
	return false
}

// settle gives this process its network, and the files in a folder by which names
// are found.
func settle(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+publicAddress+" "+publicHost+"\n"), 0o644); err != nil {
		return err
	}
	resolver := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(resolver, []byte("nameserver "+wellKnown+"\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		return err
	}
	for from, to := range map[string]string{hosts: "/etc/hosts", resolver: "/etc/resolv.conf"} {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	for _, address := range []string{publicAddress, wellKnown} {
		if err := routeHere(net.ParseIP(address).To4()); err != nil {
			return err
		}
	}
	return nil
}

// routeHere makes an address one of this network, by a route of the kind "local"
// (rtnetlink(7)).
func routeHere(address net.IP) error {
	attribute := func(kind uint16, value []byte) []byte {
		out := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		return append(binary.NativeEndian.AppendUint16(out, kind), value...)
	}
	body := []byte{unix.AF_INET, 32, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	body = append(body, attribute(unix.RTA_DST, address)...)
	body = append(body, attribute(unix.RTA_OIF, []byte{1, 0, 0, 0})...)
	message := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	message = binary.NativeEndian.AppendUint16(message, unix.RTM_NEWROUTE)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	message = append(message, make([]byte, 8)...)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < 20 {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[16:20])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// publish serves a handler at the public host, and returns the file with the
// certificate that its clients have to trust.
func publish(t *testing.T, handler http.Handler) (certificate string) {
	t.Helper()
	root := sign(t, nil, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	leaf := sign(t, &root, &x509.Certificate{DNSNames: []string{publicHost}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", publicPort))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}, TLS: &tls.Config{Certificates: []tls.Certificate{leaf}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	certificate = filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate[0]}), 0o644); err != nil {
		t.Fatal(err)
	}
	return certificate
}

// sign makes a certificate, signed by another one or by itself.
func sign(t *testing.T, by *tls.Certificate, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(1), pkix.Name{CommonName: fmt.Sprintf("test %v", template.IsCA)}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}
}
