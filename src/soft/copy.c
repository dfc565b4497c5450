// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies by the kernel, and the copy by the CPU that keeps the order in which a peer sees the
 * bytes. The kernel's copies (process_vm_readv, process_vm_writev) report a bad address instead of
 * raising a signal, also for memory of our own. Where order matters, the range is cut before its
 * last word: the kernel copies each element of the remote vector after the one before it, while
 * within one element its string instructions may store in any order. A cut costs a third of a
 * microsecond.
 */
#include "soft/copy.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "shared/fd.h"

__thread bool soft_is_library_thread;

#define TAIL_LEN 8u
#define PIPE_PIECE (32u * 1024)
#define CALL_MAX (1u << 30) /* bytes per system call; the kernel's limit is just below 2 GiB */

enum direction {
	FROM_REMOTE,
	TO_REMOTE,
};

/* One copy by the kernel between our vector and an address range of a process, which may be our
 * own. */
struct vm_copy {
	soft_gate *gate; /* of the target; NULL: none */
	enum direction direction;
	bool is_ordered; /* the last bytes of the target become visible last */
	pid_t pid;
	uint64_t address;    /* remote */
	uint64_t target_end; /* if is_ordered: where the written bytes end */
	size_t len;
};

/*
 * The length of the tail before `end`: one aligned word of 1, 2, 4 or 8 bytes, which the kernel
 * stores at once.
 */
static size_t tail_len(uint64_t end, size_t len)
{
	size_t size = TAIL_LEN;

	while (size > len || (end & (size - 1)))
		size /= 2;
	return size;
}

/*
 * Cuts the remote range, from `done` on, into pieces that are copied one after the other: body,
 * rest of the last 8 bytes, last word (often only two of them). Returns their number.
 */
static int cut_range(const struct vm_copy *copy, size_t done, size_t len, struct iovec cut_out[3])
{
	size_t ends[3] = {0, 0, len};
	size_t start = 0;
	int count = 0;

	if (copy->is_ordered && done + len == copy->len) {
		ends[0] = len > TAIL_LEN ? len - TAIL_LEN : 0;
		ends[1] = len - tail_len(copy->target_end, len);
	}
	for (int i = 0; i < 3; i++) {
		if (ends[i] == start)
			continue;
		cut_out[count].iov_base = (void *)(uintptr_t)(copy->address + done + start);
		cut_out[count].iov_len = ends[i] - start;
		count++;
		start = ends[i];
	}
	return count;
}

static int vm_errno(int error)
{
	switch (error) {
	case EFAULT:
	case EINVAL: /* a length or address that no process can have */
		return -EFAULT;
	case ESRCH:
		return -ESRCH;
	case ENOMEM:
		return -ENOMEM;
	default: /* EPERM, and what a seccomp filter may choose: ENOSYS, EACCES, ... */
		return -EPERM;
	}
}

/* Removes the first `done` bytes from a vector of ours. */
static void advance_iov(struct iovec *iov, int *first, int count, size_t done)
{
	while (*first < count && done >= iov[*first].iov_len) {
		done -= iov[*first].iov_len;
		(*first)++;
	}
	if (done) {
		assert(*first < count);
		iov[*first].iov_base = (uint8_t *)iov[*first].iov_base + done;
		iov[*first].iov_len -= done;
	}
}

/* Returns how many bytes were copied, or -errno as documented in copy.h. */
static ssize_t vm_call(const struct vm_copy *copy, size_t done, size_t len,
		       const struct iovec *local, int count)
{
	struct iovec remote[3];
	unsigned long cuts = (unsigned long)cut_range(copy, done, len, remote);
	bool is_write = copy->direction == TO_REMOTE;
	ssize_t n;

	if (copy->gate) {
		if (!soft_gate_vm(copy->gate, is_write, copy->pid, local, (unsigned long)count,
				  remote, cuts, &n))
			return -EAGAIN;
		return n < 0 ? vm_errno((int)-n) : n;
	}
	if (is_write)
		n = process_vm_writev(copy->pid, local, (unsigned long)count, remote, cuts, 0);
	else
		n = process_vm_readv(copy->pid, local, (unsigned long)count, remote, cuts, 0);
	return n < 0 ? vm_errno(errno) : n;
}

/* Copies the rest after `done` bytes (maybe 0), for partial results and long ranges. */
static int vm_run_rest(const struct vm_copy *copy, const struct iovec *iov, int count, size_t *done)
{
	struct iovec local[SOFT_COPY_IOV_MAX];
	int first = 0;

	assert(count <= SOFT_COPY_IOV_MAX);
	memcpy(local, iov, (size_t)count * sizeof(*iov));
	advance_iov(local, &first, count, *done);
	while (*done < copy->len) {
		size_t left = copy->len - *done;
		ssize_t n = vm_call(copy, *done, left < CALL_MAX ? left : CALL_MAX, local + first,
				    count - first);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return -EFAULT;
		*done += (size_t)n;
		advance_iov(local, &first, count, (size_t)n);
	}
	return 0;
}

static int vm_run(const struct vm_copy *copy, const struct iovec *iov, int count, size_t *done)
{
	ssize_t n;

	*done = 0;
	if (copy->len == 0)
		return 0;
	if (copy->address > UINT64_MAX - copy->len)
		return -EFAULT;
	if (copy->len <= CALL_MAX) {
		n = vm_call(copy, 0, copy->len, iov, count);
		if (n == (ssize_t)copy->len) {
			*done = copy->len;
			return 0;
		}
		if (n < 0)
			return (int)n;
		*done = (size_t)n;
	}
	return vm_run_rest(copy, iov, count, done);
}

/* The size of the largest aligned word at the start of a tail of `left` bytes. */
static size_t tail_part(uintptr_t at, size_t left)
{
	size_t size = TAIL_LEN;

	while (size > left || (at & (size - 1)))
		size /= 2;
	return size;
}

/* --- within this process --- */

static int pipe_piece(const int fds[2], uintptr_t dst, uintptr_t src, size_t len)
{
	while (len) {
		ssize_t in = write(fds[1], (const void *)src, len < PIPE_PIECE ? len : PIPE_PIECE);
		size_t out = 0;

		if (in < 0 && errno == EINTR)
			continue;
		if (in <= 0)
			return in < 0 && errno != EFAULT ? -EPERM : -EFAULT;
		while (out < (size_t)in) {
			ssize_t n = read(fds[0], (void *)(dst + out), (size_t)in - out);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 && errno != EFAULT ? -EPERM : -EFAULT;
			out += (size_t)n;
		}
		dst += (size_t)in;
		src += (size_t)in;
		len -= (size_t)in;
	}
	return 0;
}

/*
 * Copies through a pipe, whose two ends report a bad address as well. The pipe is created for each
 * copy: this is for sandboxes that forbid process_vm_writev, and for memory that the kernel does
 * not let it access (device memory, secret memory); neither justifies two open descriptors.
 */
static int pipe_copy(uintptr_t dst, uintptr_t src, size_t len)
{
	struct vm_copy copy = {
		.is_ordered = true, .address = dst, .target_end = dst + len, .len = len};
	struct iovec cut[3];
	int cuts = cut_range(&copy, 0, len, cut);
	int fds[2];
	int rc = 0;
	int state = core_cancel_off();

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		core_cancel_restore(state);
		return -EPERM;
	}
	fds[0] = opendat_fd_move(fds[0]);
	fds[1] = opendat_fd_move(fds[1]);
	for (int i = 0; i < cuts && rc == 0; i++) {
		rc = pipe_piece(fds, (uintptr_t)cut[i].iov_base, src, cut[i].iov_len);
		src += cut[i].iov_len;
	}
	close(fds[0]);
	close(fds[1]);
	core_cancel_restore(state);
	return rc;
}

static int copy_own(soft_gate *gate, void *dst, const void *src, size_t len, bool is_ordered)
{
	/* set when the kernel has refused once, to skip further attempts; so relaxed is enough */
	static _Atomic bool is_refused;
	struct vm_copy copy = {.gate = gate,
			       .direction = FROM_REMOTE,
			       .is_ordered = is_ordered,
			       .address = (uintptr_t)src,
			       .target_end = (uintptr_t)dst + len,
			       .len = len};
	struct iovec iov = {dst, len};
	size_t done = 0;
	int rc = -EPERM;

	if (len == 0)
		return 0;
	if (!atomic_load_explicit(&is_refused, memory_order_relaxed)) {
		copy.pid = getpid();
		rc = vm_run(&copy, &iov, 1, &done);
		if (rc == 0 || rc == -EAGAIN)
			return rc;
		if (rc == -EPERM)
			atomic_store_explicit(&is_refused, true, memory_order_relaxed);
	}
	/* a thread that is stopped between a check of the gate and a read would still store */
	if (gate)
		return rc;
	return pipe_copy((uintptr_t)dst + done, (uintptr_t)src + done, len - done);
}

int soft_copy_safe(soft_gate *gate, void *dst, const void *src, size_t len)
{
	return copy_own(gate, dst, src, len, true);
}

int soft_copy_safe_unordered(void *dst, const void *src, size_t len)
{
	return copy_own(NULL, dst, src, len, false);
}

void soft_copy_ordered_any(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t done = len > TAIL_LEN ? len - TAIL_LEN : 0;

	memcpy(dst, src, done);
	/* release: each word of the tail becomes visible after what was stored before it */
	while (done < len) {
		size_t size = tail_part((uintptr_t)(dst + done), len - done);
		uint64_t word = 0;

		memcpy(&word, src + done, size);
		switch (size) {
		case 8:
			__atomic_store_n((uint64_t *)(void *)(dst + done), word, __ATOMIC_RELEASE);
			break;
		case 4:
			__atomic_store_n((uint32_t *)(void *)(dst + done), (uint32_t)word,
					 __ATOMIC_RELEASE);
			break;
		case 2:
			__atomic_store_n((uint16_t *)(void *)(dst + done), (uint16_t)word,
					 __ATOMIC_RELEASE);
			break;
		default:
			__atomic_store_n(dst + done, (uint8_t)word, __ATOMIC_RELEASE);
		}
		done += size;
	}
}

int soft_copy_gated_any(soft_gate *gate, void *dst, const void *src, size_t len)
{
	size_t done = len > TAIL_LEN ? len - TAIL_LEN : 0;
	uint8_t *to = dst;
	const uint8_t *from = src;

	if (done && !soft_gate_copy(gate, to, from, done))
		return -EAGAIN;
	/*
	 * The tail is stored in the largest aligned words, each after the one before it. This pairs
	 * with the consumer's poll: a plain load, and a load barrier where the machine needs one.
	 */
	while (done < len) {
		size_t size = tail_part((uintptr_t)(to + done), len - done);

		if (!soft_gate_store(gate, to + done, from + done, size))
			return -EAGAIN;
		done += size;
	}
	return 0;
}

/* --- other processes --- */

int soft_copy_to_process(soft_gate *gate, pid_t pid, uint64_t address, const struct iovec *iov,
			 int count, size_t len)
{
	struct vm_copy copy = {.gate = gate,
			       .direction = TO_REMOTE,
			       .is_ordered = true,
			       .pid = pid,
			       .address = address,
			       .target_end = address + len,
			       .len = len};
	size_t done;

	return vm_run(&copy, iov, count, &done);
}

/* The end of the first len bytes of a vector. */
static uint64_t iov_end(const struct iovec *iov, size_t len)
{
	while (len > iov->iov_len)
		len -= iov++->iov_len;
	return (uintptr_t)iov->iov_base + len;
}

int soft_copy_from_process(pid_t pid, uint64_t address, const struct iovec *iov, int count,
			   size_t len)
{
	struct vm_copy copy = {.direction = FROM_REMOTE,
			       .is_ordered = true,
			       .pid = pid,
			       .address = address,
			       .target_end = iov_end(iov, len),
			       .len = len};
	size_t done;

	return vm_run(&copy, iov, count, &done);
}

int soft_copy_probe(pid_t pid, uint64_t address, const uint8_t token[16])
{
	uint8_t seen[16];
	struct iovec iov = {seen, sizeof(seen)};

	return soft_copy_from_process(pid, address, &iov, 1, sizeof(seen)) == 0 &&
	       memcmp(seen, token, sizeof(seen)) == 0;
}

/*
 * No system call does this for a thread that must not fault. It asks first: the kernel makes the
 * page present and writable, or says that it cannot. Where it does not know the question, the bytes
 * are read. A consumer that unmaps the memory in between has lost its process.
 */
static int check_writable(uint64_t *at)
{
	long size = sysconf(_SC_PAGESIZE);
	uintptr_t page = (uintptr_t)at & ~((uintptr_t)size - 1);
	uint64_t word;

#ifdef MADV_POPULATE_WRITE
	if (!madvise((void *)page, (size_t)size, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -EFAULT;
#else
	(void)page;
#endif
	return soft_copy_safe_unordered(&word, at, sizeof(word));
}

int soft_atomic(uint64_t *at, const uint64_t *compare, uint64_t operand, uint64_t *before_out)
{
	int rc = soft_is_library_thread ? check_writable(at) : 0;

	if (rc < 0)
		return rc;
	if (compare) {
		*before_out = *compare;
		/* stores what was there, whether it is equal or not */
		(void)__atomic_compare_exchange_n(at, before_out, operand, false, __ATOMIC_SEQ_CST,
						  __ATOMIC_SEQ_CST);
	} else {
		*before_out = __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);
	}
	return 0;
}
