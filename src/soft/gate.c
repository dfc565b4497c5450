// SPDX-License-Identifier: BSD-2-Clause
/*
 * The restartable sequences. Each is one piece of assembly. The kernel knows it by the addresses of
 * its first instruction (label 1) and of the instruction behind its last (2): a thread that is
 * interrupted in between continues at the abort handler (4), which starts again (0). The last
 * instruction commits: it is the last store, or the system call itself, which the kernel finishes
 * before a signal can stop the thread (a tracer can stop it at the begin of the call). Label 3 is
 * the descriptor, 5 the exit.
 */
#include "soft/gate.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#if defined(__has_include)
#if __has_include(<sys/rseq.h>) && (defined(__x86_64__) || defined(__aarch64__))
#define HAS_RSEQ 1
#include <sys/rseq.h>
#endif
#endif

static bool checked_copy(soft_gate *gate, void *dst, const void *src, size_t len)
{
	if (!soft_gate_is_open(gate))
		return false;
	memcpy(dst, src, len);
	return true;
}

static inline bool checked_store(soft_gate *gate, void *dst, uint64_t value, size_t size)
{
	if (!soft_gate_is_open(gate))
		return false;
	switch (size) {
	case 8:
		__atomic_store_n((uint64_t *)dst, value, __ATOMIC_RELEASE);
		break;
	case 4:
		__atomic_store_n((uint32_t *)dst, (uint32_t)value, __ATOMIC_RELEASE);
		break;
	case 2:
		__atomic_store_n((uint16_t *)dst, (uint16_t)value, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n((uint8_t *)dst, (uint8_t)value, __ATOMIC_RELEASE);
		break;
	}
	return true;
}

static bool checked_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
		       unsigned long locals, const struct iovec *remote, unsigned long remotes,
		       ssize_t *rc_out)
{
	ssize_t n;

	if (!soft_gate_is_open(gate))
		return false;
	n = is_write ? process_vm_writev(pid, local, locals, remote, remotes, 0)
		     : process_vm_readv(pid, local, locals, remote, remotes, 0);
	*rc_out = n < 0 ? -errno : n;
	return true;
}

#ifdef HAS_RSEQ

/* The area that the kernel shares with this thread. */
static struct rseq *rseq_area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

bool soft_gate_is_restartable(void)
{
	if (__rseq_size < offsetof(struct rseq, rseq_cs) + sizeof(uint64_t))
		return false;
	/* negative: the kernel has refused to register this thread */
	return (int32_t)__atomic_load_n(&rseq_area()->cpu_id, __ATOMIC_RELAXED) >= 0;
}

#define DESCRIPTOR                                                                                 \
	".pushsection __rseq_cs, \"aw\"\n"                                                         \
	".balign 32\n"                                                                             \
	"3: .long 0, 0\n"                                                                          \
	".quad 1f, (2f - 1f), 4f\n"                                                                \
	".popsection\n"

#endif

#if defined(HAS_RSEQ) && defined(__x86_64__)

/*
 * The kernel requires these bytes before the handler: a signature that is an invalid instruction.
 */
#define BEGIN                                                                                      \
	DESCRIPTOR ".pushsection __rseq_failure, \"ax\"\n"                                         \
		   ".byte 0x0f, 0xb9, 0x3d\n"                                                      \
		   ".long 0x53053053\n"                                                            \
		   "4: jmp 0f\n"                                                                   \
		   ".popsection\n"                                                                 \
		   "0: leaq 3b(%%rip), %%rax\n"                                                    \
		   "movq %%rax, %[sequence]\n"                                                     \
		   "1: cmpl $0, %[gate]\n"                                                         \
		   "jne 5f\n"
#define END                                                                                        \
	"2: movl $1, %[done]\n"                                                                    \
	"5: movq $0, %[sequence]\n"

static bool rseq_copy(soft_gate *gate, void *dst, const void *src, size_t len)
{
	struct rseq *rseq = rseq_area();
	int done = 0;

	asm volatile(BEGIN "movq %[dst], %%rdi\n"
			   "movq %[src], %%rsi\n"
			   "movq %[len], %%rcx\n"
			   "cmpq $2048, %%rcx\n"
			   "jb 6f\n"
			   "shrq $3, %%rcx\n"
			   "rep movsq\n"
			   "movq %[len], %%rcx\n"
			   "andq $7, %%rcx\n"
			   "jmp 8f\n"
			   "7: movups (%%rsi), %%xmm0\n"
			   "movups %%xmm0, (%%rdi)\n"
			   "addq $16, %%rsi\n"
			   "addq $16, %%rdi\n"
			   "6: subq $16, %%rcx\n"
			   "jae 7b\n"
			   "addq $16, %%rcx\n"
			   "testq $8, %%rcx\n"
			   "jz 8f\n"
			   "movq (%%rsi), %%rax\n"
			   "movq %%rax, (%%rdi)\n"
			   "addq $8, %%rsi\n"
			   "addq $8, %%rdi\n"
			   "subq $8, %%rcx\n"
			   "8: testq %%rcx, %%rcx\n"
			   "jz 2f\n"
			   "9: movb (%%rsi), %%al\n"
			   "movb %%al, (%%rdi)\n"
			   "incq %%rsi\n"
			   "incq %%rdi\n"
			   "decq %%rcx\n"
			   "jnz 9b\n" END
		     : [done] "+r"(done), [sequence] "+m"(rseq->rseq_cs)
		     : [gate] "m"(*gate), [dst] "r"(dst), [src] "r"(src), [len] "r"(len)
		     : "rax", "rcx", "rsi", "rdi", "xmm0", "cc", "memory");
	return done;
}

/* Stores become visible in order on this machine. */
#define STORE_8 "movq %q[value]"
#define STORE_4 "movl %k[value]"
#define STORE_2 "movw %w[value]"
#define STORE_1 "movb %b[value]"
#define STORE(instruction, type)                                                                   \
	asm volatile(                                                                              \
		BEGIN instruction ", %[target]\n" END                                              \
		: [done] "+r"(done), [sequence] "+m"(rseq->rseq_cs), [target] "=m"(*(type *)dst)   \
		: [gate] "m"(*gate), [value] "r"(value)                                            \
		: "rax", "cc", "memory")

static bool rseq_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
		    unsigned long locals, const struct iovec *remote, unsigned long remotes,
		    ssize_t *rc_out)
{
	long number = is_write ? SYS_process_vm_writev : SYS_process_vm_readv;
	struct rseq *rseq =
		rseq_area(); /* before the variables below: a call may change their registers */
	register unsigned long remote_arg asm("r10") = (unsigned long)remote;
	register unsigned long remotes_arg asm("r8") = remotes;
	register unsigned long flags_arg asm("r9") = 0;
	ssize_t rc = 0;
	int done = 0;

	asm volatile(BEGIN "movq %[number], %%rax\n"
			   "syscall\n" END
		     : [done] "+r"(done), [sequence] "+m"(rseq->rseq_cs), "+&a"(rc)
		     : [gate] "m"(*gate), [number] "r"(number), "D"((long)pid), "S"(local),
		       "d"(locals), "r"(remote_arg), "r"(remotes_arg), "r"(flags_arg)
		     : "rcx", "r11", "cc", "memory");
	*rc_out = rc;
	return done;
}

#elif defined(HAS_RSEQ)

#define BEGIN                                                                                      \
	DESCRIPTOR ".pushsection __rseq_failure, \"ax\"\n"                                         \
		   ".inst 0xd428bc00\n"                                                            \
		   "4: b 0f\n"                                                                     \
		   ".popsection\n"                                                                 \
		   "0: adrp x9, 3b\n"                                                              \
		   "add x9, x9, :lo12:3b\n"                                                        \
		   "str x9, %[sequence]\n"                                                         \
		   "1: ldr w9, %[gate]\n"                                                          \
		   "cbnz w9, 5f\n"
#define END                                                                                        \
	"2: mov %w[done], #1\n"                                                                    \
	"5: str xzr, %[sequence]\n"

static bool rseq_copy(soft_gate *gate, void *dst, const void *src, size_t len)
{
	struct rseq *rseq = rseq_area();
	int done = 0;

	asm volatile(BEGIN "mov x10, %[dst]\n"
			   "mov x11, %[src]\n"
			   "mov x12, %[len]\n"
			   "b 7f\n"
			   "6: ldp x13, x14, [x11], #16\n"
			   "stp x13, x14, [x10], #16\n"
			   "7: subs x12, x12, #16\n"
			   "b.hs 6b\n"
			   "adds x12, x12, #16\n"
			   "b.eq 2f\n"
			   "8: ldrb w13, [x11], #1\n"
			   "strb w13, [x10], #1\n"
			   "subs x12, x12, #1\n"
			   "b.ne 8b\n" END
		     : [done] "+r"(done), [sequence] "+Q"(rseq->rseq_cs)
		     : [gate] "Q"(*gate), [dst] "r"(dst), [src] "r"(src), [len] "r"(len)
		     : "x9", "x10", "x11", "x12", "x13", "x14", "cc", "memory");
	return done;
}

/* Each is a store-release: earlier stores become visible before it. */
#define STORE_8 "stlr %x[value]"
#define STORE_4 "stlr %w[value]"
#define STORE_2 "stlrh %w[value]"
#define STORE_1 "stlrb %w[value]"
#define STORE(instruction, type)                                                                   \
	asm volatile(                                                                              \
		BEGIN instruction ", %[target]\n" END                                              \
		: [done] "+r"(done), [sequence] "+Q"(rseq->rseq_cs), [target] "=Q"(*(type *)dst)   \
		: [gate] "Q"(*gate), [value] "r"(value)                                            \
		: "x9", "cc", "memory")

static bool rseq_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
		    unsigned long locals, const struct iovec *remote, unsigned long remotes,
		    ssize_t *rc_out)
{
	struct rseq *rseq =
		rseq_area(); /* before the variables below: a call may change their registers */
	register long pid_arg asm("x15") = pid;
	register unsigned long local_arg asm("x1") = (unsigned long)local;
	register unsigned long locals_arg asm("x2") = locals;
	register unsigned long remote_arg asm("x3") = (unsigned long)remote;
	register unsigned long remotes_arg asm("x4") = remotes;
	register unsigned long flags_arg asm("x5") = 0;
	register long number_arg asm("x8") =
		is_write ? SYS_process_vm_writev : SYS_process_vm_readv;
	register long rc asm("x0") = 0;
	int done = 0;

	/* x0 is an argument and the result: it is set again on each start */
	asm volatile(BEGIN "mov x0, x15\n"
			   "svc #0\n" END
		     : [done] "+r"(done), [sequence] "+Q"(rseq->rseq_cs), "+r"(rc)
		     : [gate] "Q"(*gate), "r"(pid_arg), "r"(local_arg), "r"(locals_arg),
		       "r"(remote_arg), "r"(remotes_arg), "r"(flags_arg), "r"(number_arg)
		     : "x9", "cc", "memory");
	*rc_out = rc;
	return done;
}

#else

bool soft_gate_is_restartable(void)
{
	return false;
}

#define rseq_copy checked_copy
#define rseq_store checked_store
#define rseq_vm checked_vm

#endif

#ifdef HAS_RSEQ

static inline __attribute__((always_inline)) bool rseq_store(soft_gate *gate, void *dst,
							     uint64_t value, size_t size)
{
	struct rseq *rseq = rseq_area();
	int done = 0;

	switch (size) {
	case 8:
		STORE(STORE_8, uint64_t);
		break;
	case 4:
		STORE(STORE_4, uint32_t);
		break;
	case 2:
		STORE(STORE_2, uint16_t);
		break;
	default:
		STORE(STORE_1, uint8_t);
		break;
	}
	return done;
}

#endif

bool soft_gate_copy(soft_gate *gate, void *dst, const void *src, size_t len)
{
	if (!soft_gate_is_restartable())
		return checked_copy(gate, dst, src, len);
	return rseq_copy(gate, dst, src, len);
}

bool soft_gate_store(soft_gate *gate, void *dst, const void *src, size_t size)
{
	uint64_t value = 0;

	/*
	 * copied by size: the low bytes are right on the (little-endian) machines that we support
	 */
	memcpy(&value, src, size);
	if (!soft_gate_is_restartable())
		return checked_store(gate, dst, value, size);
	return rseq_store(gate, dst, value, size);
}

bool soft_gate_store_word(soft_gate *gate, void *dst, const void *src)
{
	uint64_t value;

	memcpy(&value, src, sizeof(value));
	if (!soft_gate_is_restartable())
		return checked_store(gate, dst, value, sizeof(value));
	return rseq_store(gate, dst, value, sizeof(value));
}

bool soft_gate_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
		  unsigned long locals, const struct iovec *remote, unsigned long remotes,
		  ssize_t *rc_out)
{
	if (!soft_gate_is_restartable())
		return checked_vm(gate, is_write, pid, local, locals, remote, remotes, rc_out);
	return rseq_vm(gate, is_write, pid, local, locals, remote, remotes, rc_out);
}
