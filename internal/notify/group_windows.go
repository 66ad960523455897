package notify

import (
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// apart starts the supervisor without the parent's console and group.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS, HideWindow: true}
}

// group is a job object that holds the supervisor and whatever it starts. When
// the supervisor ends, its last handle closes and the system ends the rest.
type group struct{ job windows.Handle }

func newGroup(*exec.Cmd) (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		windows.CloseHandle(job)
		return nil, err
	}
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		windows.CloseHandle(job)
		return nil, err
	}
	return &group{job}, nil
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION (winnt.h).
type accounting struct {
	totalUserTime, totalKernelTime, periodUserTime, periodKernelTime int64
	pageFaults, total, active, terminated                            uint32
}

const look = 50 * time.Millisecond

// wait waits until cmd and everything in the job but the supervisor have ended,
// or the limit is over; what is left then ends with the supervisor.
func (g *group) wait(cmd *exec.Cmd, limit time.Duration) (exit int, killed bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ended := make(chan struct{})
	go func() { // ends with cmd, which ends at the limit
		cmd.Wait() // how it ended is in ProcessState
		close(ended)
	}()
	select {
	case <-ended:
	case <-timer.C:
		cmd.Process.Kill() // what it started ends with the job
		<-ended
		return cmd.ProcessState.ExitCode(), true
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for g.active() > 1 {
		select {
		case <-ticker.C:
		case <-timer.C:
			return cmd.ProcessState.ExitCode(), true
		}
	}
	return cmd.ProcessState.ExitCode(), false
}

func (g *group) active() uint32 {
	var a accounting
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	if err != nil {
		return 0
	}
	return a.active
}
