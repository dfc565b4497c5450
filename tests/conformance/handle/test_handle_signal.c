// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signals and clocks: threads of the library take no signal, the library changes no handler of the
 * consumer, raises no SIGPIPE, and its time limits do not depend on the system time.
 */
#include "conf.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define LEN 65536u
#define MAX_THREADS 256

/* --- a system time that jumps --- */

static atomic_bool jumping;

#if !DT_SLOW
/*
 * Replaces the function of the C library in this program and all libraries: the system time jumps
 * by days at each call. A wait that depended on it would end at once or never.
 */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *now)
{
	static atomic_int calls;
	const int ret = (int)syscall(SYS_clock_gettime, id, now);

	if (ret == 0 && atomic_load(&jumping) &&
	    (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		now->tv_sec += atomic_fetch_add(&calls, 1) % 2 ? 86400 : -86400;
	return ret;
}
#endif

/* GEN-37 EVD-WAIT-05 */
static void evd_wait__system_time_jumps__waits_as_long_as_asked(void **state)
{
	struct dt_ia ia;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT more;

	(void)state;
	if (DT_SLOW)
		skip(); /* they replace the same function */
	dt_ia_open(&ia);
	evd = dt_evd_create(&ia, 4, DAT_EVD_DTO_FLAG);
	atomic_store(&jumping, true);
	const uint64_t before = dt_now_us();
	const DAT_RETURN ret = dat_evd_wait(evd, 100000, 1, &event, &more);
	const uint64_t took_us = dt_now_us() - before;

	atomic_store(&jumping, false);
	dt_fails(ret, DAT_TIMEOUT_EXPIRED);
	assert_true(took_us >= 100000);
	assert_true(took_us < 10000000);
	dt_ok(dat_evd_free(evd));
	dt_ia_close(&ia);
}

/* --- threads --- */

struct threads {
	pid_t tid[MAX_THREADS];
	size_t count;
};

static void list_threads(struct threads *threads)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;

	threads->count = 0;
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && threads->count < MAX_THREADS)
			threads->tid[threads->count++] = atoi(entry->d_name);
	closedir(dir);
}

static bool is_listed(const struct threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->tid[i] == tid)
			return true;
	return false;
}

/* The blocked signals of a thread; all if the thread has ended. */
static uint64_t blocked_signals(pid_t tid)
{
	unsigned long long mask = UINT64_MAX;
	char line[256], path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	FILE *file = fopen(path, "re");

	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	fclose(file);
	return mask;
}

/* All signals but those that cannot be blocked and the two that the C library reserves. */
static uint64_t blockable_signals(void)
{
	uint64_t mask = 0;

	for (int number = 1; number < 65; number++)
		if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33)
			mask |= 1ull << (number - 1);
	return mask;
}

static void run_traffic(struct dt_pair *pair, struct dt_buf *buf, int rounds)
{
	dt_map(&pair->a, dt_seg(buf, 0, 1), dt_rseg(buf, LEN / 2, 1));
	for (int i = 0; i < rounds; i++) {
		conf_write(pair, dt_seg(buf, 0, LEN / 2), dt_rseg(buf, LEN / 2, LEN / 2));
		conf_send(pair, dt_seg(buf, 0, 64), dt_seg(buf, 64, 64));
	}
}

/* GEN-36 */
static void threads__of_the_library__block_all_signals(void **state)
{
	struct threads before, during;
	struct dt_pair pair;
	struct dt_buf buf;

	(void)state;
	list_threads(&before);
	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, LEN, DAT_MEM_PRIV_ALL_FLAG);
	run_traffic(&pair, &buf, 20);
	list_threads(&during);
	for (size_t i = 0; i < during.count; i++)
		if (!is_listed(&before, during.tid[i]))
			assert_int_equal(~blocked_signals(during.tid[i]) & blockable_signals(), 0);
	dt_buf_free(&buf);
	dt_pair_close(&pair);
}

/* --- dispositions --- */

static void list_dispositions(struct sigaction action_out[65])
{
	memset(action_out, 0, 65 * sizeof(*action_out));
	for (int number = 1; number < 65; number++)
		if (number != 32 && number != 33)
			assert_int_equal(sigaction(number, NULL, &action_out[number]), 0);
}

static void check_dispositions(const struct sigaction before[65])
{
	struct sigaction now[65];

	list_dispositions(now);
	for (int number = 1; number < 65; number++) {
		assert_ptr_equal((void *)(uintptr_t)now[number].sa_sigaction,
				 (void *)(uintptr_t)before[number].sa_sigaction);
		assert_int_equal(now[number].sa_flags, before[number].sa_flags);
	}
}

/* GEN-36 */
static void dispositions__open_transfer_close__unchanged(void **state)
{
	struct sigaction before[65];
	sigset_t mask_before, mask_after;
	struct dt_pair pair;
	struct dt_buf buf;

	(void)state;
	list_dispositions(before);
	sigprocmask(SIG_SETMASK, NULL, &mask_before);
	dt_pair_open(&pair);
	check_dispositions(before);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, LEN, DAT_MEM_PRIV_ALL_FLAG);
	run_traffic(&pair, &buf, 20);
	check_dispositions(before);
	dt_buf_free(&buf);
	dt_pair_close(&pair);
	check_dispositions(before);
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	for (int number = 1; number < 32; number++)
		assert_int_equal(sigismember(&mask_before, number),
				 sigismember(&mask_after, number));
}

/* --- a flood --- */

static atomic_uint alarms, foreign_alarms, pipes;

static void on_alarm(int number)
{
	(void)number;
	atomic_fetch_add(syscall(SYS_gettid) == getpid() ? &alarms : &foreign_alarms, 1);
}

static void on_pipe(int number)
{
	(void)number;
	atomic_fetch_add(&pipes, 1);
}

static void handle(int number, void (*handler)(int number), struct sigaction *old_out)
{
	struct sigaction action = {.sa_handler = handler};

	assert_int_equal(sigaction(number, &action, old_out), 0);
}

static void set_timer(long us)
{
	const struct itimerval timer = {.it_interval = {.tv_usec = us},
					.it_value = {.tv_usec = us}};

	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* GEN-36 EVD-WAIT-24 */
static void alarm_flood__under_traffic__handled_by_consumer_threads_only(void **state)
{
	const uint64_t end = dt_now_us() + 300000;
	struct sigaction old;
	struct dt_pair pair;
	struct dt_buf buf;
	DAT_EVENT event;
	DAT_COUNT more;

	(void)state;
	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, LEN, DAT_MEM_PRIV_ALL_FLAG);
	handle(SIGALRM, on_alarm, &old);
	set_timer(1000);
	while (dt_now_us() < end || atomic_load(&alarms) < 10) {
		/* The consumer's only thread blocks the signal, so a thread of the library would
		 * take it. */
		sigset_t block;

		run_traffic(&pair, &buf, 1);
		sigemptyset(&block);
		sigaddset(&block, SIGALRM);
		assert_int_equal(sigprocmask(SIG_BLOCK, &block, NULL), 0);
		run_traffic(&pair, &buf, 1);
		dat_evd_wait(pair.a.conn, 2000, 1, &event, &more);
		assert_int_equal(sigprocmask(SIG_UNBLOCK, &block, NULL), 0);
	}
	set_timer(0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	assert_int_equal(atomic_load(&foreign_alarms), 0);
	dt_buf_free(&buf);
	dt_pair_close(&pair);
}

/* --- a dead peer --- */

static void write_until_killed(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
	DAT_CONN_QUAL qual;

	(void)arg;
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, LEN, CONF_LOCAL);
	DAT_LMR_TRIPLET seg = dt_seg(&buf, 0, LEN);

	for (int i = 0; i < 8; i++)
		dt_ok(dat_ep_post_recv(ep.ep, 1, &seg, dt_cookie(0), 0));
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (;;) {
		dt_event(ep.recv);
		dt_ok(dat_ep_post_recv(ep.ep, 1, &seg, dt_cookie(0), 0));
	}
}

/* Sends until the connection ends; every Send completes. */
static void send_into_the_void(struct dt_peer *peer, struct dt_ep *ep, struct dt_buf *buf)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, 0, LEN);
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;

	for (int i = 0; status == DAT_DTO_SUCCESS; i++) {
		if (i == 50)
			dt_peer_kill(peer);
		dt_ok(dat_ep_post_send(ep->ep, 1, &seg, dt_cookie(1), 0));
		status = dt_event(ep->request).event_data.dto_completion_event_data.status;
	}
}

/* GEN-36 COMPAT-19 */
static void peer_killed__under_traffic__no_sigpipe(void **state)
{
	struct dt_listener listener;
	struct sigaction old;
	struct dt_peer peer;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;

	(void)state;
	handle(SIGPIPE, on_pipe, &old);
	dt_peer_start(&peer, write_until_killed, NULL);
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, LEN, CONF_LOCAL);
	dt_listen(&ia, &listener);
	dt_peer_send(&peer, &listener.qual, sizeof(listener.qual));
	dt_ok(dat_cr_accept(dt_request(&listener), ep.ep, 0, NULL));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	send_into_the_void(&peer, &ep, &buf);
	const DAT_EVENT event = dt_event(ep.conn);

	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_unlisten(&listener);
	dt_buf_free(&buf);
	dt_ep_free(&ep);
	dt_ia_close(&ia);
	assert_int_equal(sigaction(SIGPIPE, &old, NULL), 0);
	assert_int_equal(atomic_load(&pipes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evd_wait__system_time_jumps__waits_as_long_as_asked),
		cmocka_unit_test(threads__of_the_library__block_all_signals),
		cmocka_unit_test(dispositions__open_transfer_close__unchanged),
		cmocka_unit_test(alarm_flood__under_traffic__handled_by_consumer_threads_only),
		cmocka_unit_test(peer_killed__under_traffic__no_sigpipe),
	};

	return cmocka_run_group_tests_name("handle signal", tests, NULL, NULL);
}
