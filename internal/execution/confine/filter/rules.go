package filter

// verdict is the code for calls of a rule.
func (o Options) verdict(r rule) verdict {
	switch r {
	case unlisted, absent:
		return fail(enosys)
	case refused:
		return fail(eperm)
	case allowed:
		return allow()
	case ifIPC:
		return permit(o.IPC)
	case byCloneFlags:
		return cloneVerdict()
	case byUnshareFlags:
		return unshareVerdict()
	case byNode:
		return nodeVerdict(1)
	case byNodeAt:
		return nodeVerdict(2)
	case byRequest:
		return o.requestVerdict()
	case byOption:
		return optionVerdict()
	case byPersona:
		return personaVerdict()
	case byOperation:
		return operationVerdict()
	case bySignal1:
		return signalVerdict(1)
	case bySignal2:
		return signalVerdict(2)
	case byCommand:
		const setSignal = 10 // F_SETSIG: by which one the owner of a file is told
		return argument(1, when(jumpEqual, setSignal, signalVerdict(2), allow()))
	case byProcess:
		// Its own limits only: those of the helper would end it.
		return argument(0, when(jumpEqual, 0, allow(), fail(eperm)))
	case byFamily:
		return o.familyVerdict()
	case byPair:
		return o.pairVerdict()
	case byWhom:
		return whomVerdict(0) // PRIO_PROCESS
	case byWhomIO:
		return whomVerdict(1) // IOPRIO_WHO_PROCESS
	}
	return kill() // no rule of the table
}

// permit is for what an option decides.
func permit(permitted bool) verdict {
	if permitted {
		return allow()
	}
	return fail(eperm)
}

// signalVerdict refuses the signals by which the outside stops a box and lets it go
// on (plan.StopSignal, plan.ContinueSignal): the helper obeys whoever sends them, and
// a thread of it is under the command's own Landlock.
func signalVerdict(n int) verdict {
	const stop, proceed = 40, 41
	return argument(uint32(n), among([]uint32{stop, proceed}, fail(eperm), allow()))
}

// Flags of clone and unshare (linux/sched.h).
const (
	cloneVM        = 0x00000100
	cloneFS        = 0x00000200
	cloneFiles     = 0x00000400
	cloneSighand   = 0x00000800
	cloneThread    = 0x00010000
	cloneNewNS     = 0x00020000
	cloneSysvsem   = 0x00040000
	cloneNewCgroup = 0x02000000
	cloneNewUTS    = 0x04000000
	cloneNewIPC    = 0x08000000
	cloneNewUser   = 0x10000000
	cloneNewPID    = 0x20000000
	cloneNewNet    = 0x40000000
)

// cloneVerdict refuses new namespaces: in a user namespace of its own, a program
// is root again, and most of the kernel opens. All other bits of clone are taken,
// none is left that could come to mean a namespace.
func cloneVerdict() verdict {
	const namespaces = cloneNewNS | cloneNewCgroup | cloneNewUTS | cloneNewIPC | cloneNewUser | cloneNewPID | cloneNewNet
	return argument(0, when(jumpAny, namespaces, fail(eperm), allow()))
}

// unshareVerdict allows what threads do with what they share. unshare has free
// bits, some of which have become namespaces since (CLONE_NEWTIME,
// UNSHARE_EMPTY_MNTNS), and it looks at all 64.
func unshareVerdict() verdict {
	const threads = cloneVM | cloneFS | cloneFiles | cloneSighand | cloneThread | cloneSysvsem
	return argument(0, when(jumpAny, ^uint32(threads), fail(eperm),
		upperHalf(0, when(jumpEqual, 0, allow(), fail(eperm)))))
}

// nodeVerdict allows files, pipes and sockets, and no devices: what a device node
// opens is chosen by its number, wherever it lies.
func nodeVerdict(mode uint32) verdict {
	const kinds = 0xf000
	const file, regular, pipe, socket = 0, 0x8000, 0x1000, 0xc000
	return argument(mode, masked(kinds, among([]uint32{file, regular, pipe, socket}, allow(), fail(eperm))))
}

// requestVerdict is for ioctl, of which the kernel takes 32 bits. Requests of
// terminals are a list of what is allowed; what has mattered for sandboxes was
// always among them: TIOCSTI types into the terminal for whoever reads next,
// TIOCLINUX does so on a console, TIOCSETD loads drivers, and the same letter is
// that of tunnels (TUNSETIFF). Others are too many for a list, and belong to
// devices, which are not in the sandbox; of these some are refused.
func (o Options) requestVerdict() verdict {
	const plain, letter = 0xffffff00, 0x0000ff00 // without direction and size; whatever they are
	const terminal, keyboard, console = 'T' << 8, 'K' << 8, 'V' << 8
	return argument(1, masked(plain, among([]uint32{keyboard, console}, fail(eperm),
		argument(1, masked(letter, when(jumpEqual, terminal,
			argument(1, among(o.terminalRequests(), allow(), fail(eperm))),
			argument(1, among(refusedRequests(), fail(eperm), allow()))))))))
}

// refusedRequests are those of files, besides devices, that would do what the
// calls for it may not.
func refusedRequests() []uint32 {
	return []uint32{
		0x800c6613, // FS_IOC_SET_ENCRYPTION_POLICY
		0xc0506617, // FS_IOC_ADD_ENCRYPTION_KEY: keys are the user's, not the sandbox's;
		0xc0406618, // FS_IOC_REMOVE_ENCRYPTION_KEY: this one locks the user's own files
		0xc0406619, // FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS
		0x0000aa00, // USERFAULTFD_IOC_NEW
	}
}

// terminalRequests are the requests with the letter T that are allowed.
func (o Options) terminalRequests() []uint32 {
	// Some have become requests of every descriptor.
	list := []uint32{
		0x5411, // TIOCOUTQ, SIOCOUTQ
		0x541b, // FIONREAD, TIOCINQ, SIOCINQ
		0x5421, // FIONBIO
		0x5450, // FIONCLEX
		0x5451, // FIOCLEX
		0x5452, // FIOASYNC
		0x5460, // FIOQSIZE

		0x5401,     // TCGETS: what isatty asks
		0x5405,     // TCGETA
		0x540f,     // TIOCGPGRP
		0x5413,     // TIOCGWINSZ
		0x5424,     // TIOCGETD
		0x5429,     // TIOCGSID
		0x802c542a, // TCGETS2
	}
	if !o.Terminal {
		return list
	}
	return append(list,
		0x5402, 0x5403, 0x5404, // TCSETS, TCSETSW, TCSETSF
		0x5406, 0x5407, 0x5408, // TCSETA, TCSETAW, TCSETAF
		0x402c542b, 0x402c542c, 0x402c542d, // TCSETS2, TCSETSW2, TCSETSF2
		0x5409, 0x5425, // TCSBRK, TCSBRKP: tcdrain and tcsendbreak
		0x540a,     // TCXONC
		0x540b,     // TCFLSH
		0x540e,     // TIOCSCTTY: of a session without one; from another session only root can
		0x5422,     // TIOCNOTTY
		0x5410,     // TIOCSPGRP
		0x5414,     // TIOCSWINSZ
		0x5420,     // TIOCPKT
		0x80045438, // TIOCGPKT
		0x80045430, // TIOCGPTN
		0x40045431, // TIOCSPTLCK
		0x80045439, // TIOCGPTLCK
		0x80045432, // TIOCGDEV
		0x40045436, // TIOCSIG
		0x5441,     // TIOCGPTPEER
	)
}

// optionVerdict is for prctl. What is newer than this list fails as on a kernel
// that does not know it.
func optionVerdict() verdict {
	refused := []uint32{
		35,         // PR_SET_MM: another name and image than what was executed
		0x59616d61, // PR_SET_PTRACER: who may trace
		62,         // PR_SCHED_CORE: a core that no other process may share
	}
	const last = 81 // PR_SET_CFI
	later := []uint32{
		0x53564d41, // PR_SET_VMA: names for memory, which Go and glibc give
		0x41555856, // PR_GET_AUXV
	}
	return argument(0, among(refused, fail(eperm),
		when(jumpGreater, last, among(later, allow(), fail(einval)), allow())))
}

// personaVerdict allows to ask, 32-bit names of the machine (linux32), version
// numbers for programs that fail at 3 (setarch --uname-2.6), and addresses that
// are the same each time: sanitizers and debuggers start programs so. A program
// weakens none but itself by it. What is left lets memory be executed that should
// not, or maps the first page, and helps exploits alone.
func personaVerdict() verdict {
	const query = 0xffffffff
	const linux32, uname26, noRandomize = 0x00000008, 0x00020000, 0x00040000
	return argument(0, when(jumpEqual, query, allow(),
		when(jumpAny, ^uint32(linux32|uname26|noRandomize), fail(eperm), allow())))
}

// whomVerdict allows to set the priority of a process. That of a process group
// would be set for members outside of the box too: at a terminal, the starter and
// what it is in a pipe with are in the command's group, and no namespace parts it.
func whomVerdict(process uint32) verdict {
	return argument(0, when(jumpEqual, process, allow(), fail(eperm)))
}

// operationVerdict allows programs to filter themselves further, as browsers and
// build tools do: of several filters the strictest verdict counts. It refuses the
// flag by which a filter asks another process (SECCOMP_FILTER_FLAG_NEW_LISTENER):
// that one answers for calls and hands descriptors around, and only one can be.
func operationVerdict() verdict {
	const last = 3                                                // SECCOMP_GET_NOTIF_SIZES
	const tsync, log, specAllow, tsyncESRCH = 0x1, 0x2, 0x4, 0x10 // SECCOMP_FILTER_FLAG_...
	return argument(0, when(jumpGreater, last, fail(einval),
		argument(1, when(jumpAny, ^uint32(tsync|log|specAllow|tsyncESRCH), fail(eperm), allow()))))
}

// Families, types and protocols of sockets, which have 32 bits each.
const (
	familyUnix    = 1
	familyInet    = 2
	familyInet6   = 10
	familyNetlink = 16

	kinds         = 0xf // the rest are flags
	kindStream    = 1
	kindDatagram  = 2
	kindSeqpacket = 5

	protocolTCP   = 6
	protocolUDP   = 17
	protocolRoute = 0 // of netlink
)

// familyVerdict is for socket. Families that nobody may have fail as if the
// kernel lacked them; of the others, kinds and protocols are lists of what is
// allowed. So there is no raw socket (nor SOCK_PACKET, which inet turns into
// one), and none of the protocols besides TCP that reach a TCP port: MPTCP passed
// Landlock by.
func (o Options) familyVerdict() verdict {
	route := argument(2, when(jumpEqual, protocolRoute, allow(), fail(eprotonosupport)))
	return argument(0, when(jumpEqual, familyNetlink, route,
		when(jumpEqual, familyUnix, permit(o.Unix),
			among([]uint32{familyInet, familyInet6}, o.inetVerdict(), fail(eafnosupport)))))
}

func (o Options) inetVerdict() verdict {
	if !o.Inet {
		return fail(eperm)
	}
	only := func(protocol uint32) verdict {
		return argument(2, among([]uint32{0, protocol}, allow(), fail(eprotonosupport)))
	}
	datagrams := fail(eperm)
	if o.Datagram {
		datagrams = only(protocolUDP)
	}
	return argument(1, masked(kinds, when(jumpEqual, kindStream, only(protocolTCP),
		when(jumpEqual, kindDatagram, datagrams, fail(eperm)))))
}

// pairVerdict is for socketpair. One end of a pair of datagram sockets can send to
// any other socket by name, so Unix decides about these. SOCK_RAW is another name
// of theirs.
func (o Options) pairVerdict() verdict {
	connected := argument(1, masked(kinds, among([]uint32{kindStream, kindSeqpacket}, allow(), permit(o.Unix))))
	return argument(0, when(jumpEqual, familyUnix, connected, fail(eafnosupport)))
}
