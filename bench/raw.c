// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the machine itself can do, for bench/compare: no library can be faster.
 *
 *   raw TEST SIZE COUNT SERVER-CPU CLIENT-CPU
 *
 *   line      a cache line in shared memory passed between two processes (SIZE is ignored)
 *   memcpy    copies of SIZE bytes from one memory file to another, in one process
 *   writev    8 bytes by process_vm_writev into the private memory of the peer, which polls it
 *   eventfd   the peer sleeps in read() of an eventfd
 *   futex     the peer sleeps in futex() on a word in shared memory
 *   syscall   the cheapest system call, in one process (SIZE is ignored)
 *   tcp       messages of SIZE bytes over TCP on the loopback interface; both processes poll
 *   stream    SIZE bytes in each call of send and recv, in one direction, otherwise the same
 *
 * Prints one JSON object: microseconds of one way (half a round trip) or of one call, or megabytes
 * per second, after a warm-up of a tenth of COUNT. Each round is timed, as in dat_perf.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "perf_clock.h"
#include "raw.h"

#define RAW_BATCH 64 /* system calls between two readings of the clock */

/* How a test signals number `value` to the peer, and how it waits for that of the peer. */
struct raw_test {
	const char *name;
	void (*signal)(struct raw *raw, uint32_t value);
	void (*wait)(struct raw *raw, uint32_t value);
};

_Noreturn void raw_fail(const char *what)
{
	tool_complain("%s: %s", what, strerror(errno));
	exit(TOOL_EXIT_FAILED);
}

static void bind_to(unsigned long cpu)
{
	if (tool_bind_to(cpu) != 0)
		raw_fail("sched_setaffinity");
}

static void *map_shared(size_t len)
{
	void *memory;
	int fd = memfd_create("raw", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)len) != 0)
		raw_fail("memfd_create");
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		raw_fail("mmap");
	memset(memory, 0, len);
	close(fd);
	return memory;
}

/* --- the tests --- */

static void line_signal(struct raw *raw, uint32_t value)
{
	atomic_store_explicit(&raw->shared[!raw->side].value, value, memory_order_release);
}

static void line_wait(struct raw *raw, uint32_t value)
{
	while (atomic_load_explicit(&raw->shared[raw->side].value, memory_order_acquire) != value)
		continue;
}

static void writev_signal(struct raw *raw, uint32_t value)
{
	uint64_t bytes = value;
	struct iovec local = {.iov_base = &bytes, .iov_len = sizeof(bytes)};
	struct iovec remote = {.iov_base = raw->own, .iov_len = sizeof(bytes)};

	if (process_vm_writev(raw->peer, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(bytes))
		raw_fail("process_vm_writev");
}

static void writev_wait(struct raw *raw, uint32_t value)
{
	while (atomic_load_explicit(&raw->own->value, memory_order_acquire) != value)
		continue;
}

static void eventfd_signal(struct raw *raw, uint32_t value)
{
	(void)value;
	if (eventfd_write(raw->events[!raw->side], 1) != 0)
		raw_fail("eventfd_write");
}

static void eventfd_wait(struct raw *raw, uint32_t value)
{
	eventfd_t number;

	(void)value;
	if (eventfd_read(raw->events[raw->side], &number) != 0)
		raw_fail("eventfd_read");
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
	return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void futex_signal(struct raw *raw, uint32_t value)
{
	_Atomic uint32_t *word = &raw->shared[!raw->side].value;

	atomic_store_explicit(word, value, memory_order_release);
	futex(word, FUTEX_WAKE, 1);
}

static void futex_wait(struct raw *raw, uint32_t value)
{
	_Atomic uint32_t *word = &raw->shared[raw->side].value;
	uint32_t found;

	while ((found = atomic_load_explicit(word, memory_order_acquire)) != value)
		futex(word, FUTEX_WAIT, found);
}

static const struct raw_test raw_tests[] = {
	{"line", line_signal, line_wait},	   {"writev", writev_signal, writev_wait},
	{"eventfd", eventfd_signal, eventfd_wait}, {"futex", futex_signal, futex_wait},
	{"tcp", raw_tcp_signal, raw_tcp_wait},
};

/* --- running them --- */

static void raw_rounds(struct raw *raw, const struct raw_test *test, uint32_t first, uint64_t count)
{
	uint64_t since = perf_clock_ticks();

	for (uint64_t i = 0; i < count; i++) {
		uint32_t value = first + (uint32_t)i;
		uint64_t now;

		if (raw->side == 1)
			test->wait(raw, value);
		test->signal(raw, value);
		if (raw->side == 1)
			continue;
		test->wait(raw, value);
		now = perf_clock_ticks();
		stats_add(&raw->stats, now - since);
		since = now;
	}
}

/* `parts`: the number of reported operations in each measured time. */
static void print_times(const char *name, const struct stats *stats, unsigned parts)
{
	double us = perf_clock_period_ns() / 1000.0 / parts;

	printf("{\"test\": \"%s\", \"count\": %" PRIu64
	       ", \"min\": %.4f, \"avg\": %.4f, \"p50\": %.4f, \"p99\": %.4f}\n",
	       name, stats->count, (double)stats->min * us, stats_average(stats) * us,
	       (double)stats_percentile(stats, 500) * us,
	       (double)stats_percentile(stats, 990) * us);
}

/* What both processes use, made before the fork. */
static void make_shared(struct raw *raw)
{
	raw->shared = map_shared(sizeof(struct raw_word) * 2 * RAW_SIDES);
	raw->own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	raw->bytes = malloc(raw->size);
	raw->events[0] = eventfd(0, EFD_CLOEXEC);
	raw->events[1] = eventfd(0, EFD_CLOEXEC);
	if (raw->own == MAP_FAILED || !raw->bytes || raw->events[0] < 0 || raw->events[1] < 0)
		raw_fail("mmap, malloc or eventfd");
	/* memory that was never written is one page of zeroes for the kernel to read */
	memset(raw->bytes, 'r', raw->size);
	raw_tcp_connect(raw);
}

/* Forks; the child, which is side 1, ends when its parent does. Returns on both sides. */
static void raw_start(struct raw *raw, const unsigned long cpus[2])
{
	pid_t first = getpid();

	make_shared(raw);
	/* each may write to the other's memory, whichever is the parent */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	raw->peer = fork();
	if (raw->peer < 0)
		raw_fail("fork");
	if (raw->peer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
		raw->side = 1;
		raw->peer = first;
	}
	bind_to(cpus[!raw->side]);
	/* a page of its own, which the first round need not copy */
	atomic_store(&raw->own->value, 0);
	/* neither begins before both have started */
	atomic_store(&raw->shared[RAW_SIDES + !raw->side].value, 1);
	while (!atomic_load(&raw->shared[RAW_SIDES + raw->side].value))
		continue;
}

/* Waits for the end of side 1: has it succeeded? */
static bool raw_has_ended(const struct raw *raw)
{
	int status = 0;

	return waitpid(raw->peer, &status, 0) == raw->peer && status == 0;
}

static int raw_ping_pong(struct raw *raw, const struct raw_test *test)
{
	uint64_t warm_up = raw->count / 10;

	raw_rounds(raw, test, 1, warm_up);
	stats_reset(&raw->stats);
	raw_rounds(raw, test, 1 + (uint32_t)warm_up, raw->count);
	if (raw->side == 1)
		_exit(0);
	if (!raw_has_ended(raw))
		return TOOL_EXIT_FAILED;
	print_times(test->name, &raw->stats, 2);
	return TOOL_EXIT_OK;
}

/* Copies or transfers of `size` bytes. */
static void print_bandwidth(const char *name, const struct raw *raw, uint64_t elapsed_ns)
{
	printf("{\"test\": \"%s\", \"count\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"mb_per_s\": %.3f}\n",
	       name, raw->count, raw->size,
	       (double)raw->size * (double)raw->count * 1e3 / (double)elapsed_ns);
}

/* The receiver leads, since only its end of the time is certain. */
static int raw_stream(struct raw *raw)
{
	uint64_t warm_up = raw->count / 10;
	uint64_t elapsed;

	if (raw->side == 1) {
		raw_tcp_send_stream(raw, warm_up + raw->count);
		_exit(0);
	}
	(void)raw_tcp_receive_stream(raw, warm_up);
	elapsed = raw_tcp_receive_stream(raw, raw->count);
	if (!raw_has_ended(raw))
		return TOOL_EXIT_FAILED;
	print_bandwidth("stream", raw, elapsed);
	return TOOL_EXIT_OK;
}

static int raw_memcpy(struct raw *raw)
{
	unsigned char *from = map_shared(raw->size);
	unsigned char *to = map_shared(raw->size);
	uint64_t start = 0;

	for (uint64_t i = 0; i < raw->count / 10 + raw->count; i++) {
		if (i == raw->count / 10)
			start = tool_now_ns();
		memcpy(to, from, raw->size);
		/* keeps the compiler from removing the copy */
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	print_bandwidth("memcpy", raw, tool_now_ns() - start);
	return TOOL_EXIT_OK;
}

static int raw_syscall(struct raw *raw)
{
	uint64_t warm_up = raw->count / 10 / RAW_BATCH;
	uint64_t rounds = raw->count / RAW_BATCH + 1;

	stats_reset(&raw->stats);
	for (uint64_t i = 0; i < warm_up + rounds; i++) {
		uint64_t since = perf_clock_ticks();

		for (unsigned call = 0; call < RAW_BATCH; call++)
			syscall(SYS_getppid);
		if (i >= warm_up)
			stats_add(&raw->stats, perf_clock_ticks() - since);
	}
	print_times("syscall", &raw->stats, RAW_BATCH);
	return TOOL_EXIT_OK;
}

int main(int argc, char **argv)
{
	static struct raw raw;
	unsigned long cpus[2];

	tool_name = "raw";
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* no process remains if bench/compare is killed */
	if (argc != 6 || tool_parse_number(argv[2], &raw.size) != 0 ||
	    tool_parse_number(argv[3], &raw.count) != 0 || raw.size == 0 || raw.count == 0 ||
	    raw.count > UINT32_MAX / 2) {
		fputs("usage: raw TEST SIZE COUNT SERVER-CPU CLIENT-CPU\n", stderr);
		return TOOL_EXIT_USAGE;
	}
	cpus[0] = strtoul(argv[4], NULL, 10);
	cpus[1] = strtoul(argv[5], NULL, 10);
	perf_clock_start();
	if (strcmp(argv[1], "memcpy") == 0 || strcmp(argv[1], "syscall") == 0) {
		bind_to(cpus[1]);
		return strcmp(argv[1], "memcpy") == 0 ? raw_memcpy(&raw) : raw_syscall(&raw);
	}
	if (strcmp(argv[1], "stream") == 0) {
		raw_start(&raw, cpus);
		return raw_stream(&raw);
	}
	for (size_t i = 0; i < sizeof(raw_tests) / sizeof(raw_tests[0]); i++) {
		if (strcmp(argv[1], raw_tests[i].name) == 0) {
			raw_start(&raw, cpus);
			return raw_ping_pong(&raw, &raw_tests[i]);
		}
	}
	tool_complain("%s: no such test", argv[1]);
	return TOOL_EXIT_USAGE;
}
