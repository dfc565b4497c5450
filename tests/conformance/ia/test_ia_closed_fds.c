// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that closes all descriptors, those of the library included, as daemons do: no thread of
 * the library runs on and on, the instance can be closed, and files that the program has opened
 * since stay as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ability.h"
#include "conf.h"

#define WATCH_MS 300
#define CPU_MAX_MS 100u	 /* of the processor's time in that time */
#define SHORT_US 100000u /* when the attempt ends that the library has to watch */
#define FILES 64
#define CLOSE_S 20u /* a process whose close takes longer is ended */

struct closing {
	bool is_connecting; /* a deadline wakes the service thread */
	bool is_reused;	    /* other files have the numbers */
};

/* --- the files of the program --- */

static int files[FILES];
static ino_t inodes[FILES];

/* Takes the lowest numbers: memory files, which are empty, and sets of descriptors. */
static void reuse_numbers(void)
{
	struct stat st;

	for (int i = 0; i < FILES; i++) {
		files[i] = i % 8 == 3 ? epoll_create1(EPOLL_CLOEXEC)
				      : memfd_create("of the program", MFD_CLOEXEC);
		assert_true(files[i] > STDERR_FILENO);
		assert_int_equal(fstat(files[i], &st), 0);
		inodes[i] = st.st_ino;
	}
}

static void check_files(void)
{
	struct epoll_event event;
	struct stat st;

	for (int i = 0; i < FILES; i++) {
		if (i % 8 == 3) {
			/* may be closed: it looks like a set of the library */
			(void)epoll_wait(files[i], &event, 1, 0);
			continue;
		}
		assert_int_equal(fstat(files[i], &st), 0);
		assert_int_equal(st.st_ino, inodes[i]);
		assert_int_equal(st.st_size, 0);
	}
}

/* --- */

static uint64_t cpu_ms(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void close_all(struct dt_peer *peer, void *arg)
{
	const struct closing *closing = arg;
	struct dt_listener listener;
	struct dt_pair pair;
	struct dt_ep ep;
	uint64_t before;

	(void)peer;
	dt_pair_open(&pair);
	dt_listen(&pair.ia, &listener);
	dt_ep_create(&pair.ia, pair.ia.pz, NULL, &ep);
	if (closing->is_connecting)
		dt_ok(dat_ep_connect(ep.ep, pair.ia.attr.ia_address_ptr, listener.qual, SHORT_US, 0,
				     NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	alarm(CLOSE_S);
	assert_int_equal(close_range(STDERR_FILENO + 1, ~0u, 0), 0);
	if (closing->is_reused)
		reuse_numbers();
	before = cpu_ms();
	(void)poll(NULL, 0, WATCH_MS);
	assert_true(cpu_ms() - before < CPU_MAX_MS);
	(void)dat_ep_disconnect(pair.a.ep, DAT_CLOSE_GRACEFUL_FLAG);
	(void)dat_ep_disconnect(pair.b.ep, DAT_CLOSE_ABRUPT_FLAG);
	(void)dat_psp_free(listener.psp);
	before = cpu_ms();
	(void)poll(NULL, 0, WATCH_MS);
	assert_true(cpu_ms() - before < CPU_MAX_MS);
	dt_ok(dat_ia_close(pair.ia.ia, DAT_CLOSE_ABRUPT_FLAG));
	if (closing->is_reused)
		check_files();
}

static void run(bool is_connecting, bool is_reused)
{
	struct closing closing = {is_connecting, is_reused};
	struct dt_peer peer;

	ABILITY_NEED(ability_threads_in_child(), "no threads in a child");
	dt_peer_start(&peer, close_all, &closing);
	dt_peer_join(&peer);
}

/* GEN-41 */
static void descriptors__closed_while_idle__no_spin_and_closes(void **state)
{
	(void)state;
	run(false, false);
}

/* GEN-41 */
static void descriptors__closed_with_a_deadline__no_spin_and_closes(void **state)
{
	(void)state;
	run(true, false);
}

/* GEN-41 */
static void descriptors__closed_and_reused__left_alone(void **state)
{
	(void)state;
	if (dt_is_verbs()) /* the libraries of the device close their own by number */
		skip();
	run(false, true);
	run(true, true);
}

static int over_tcp(void **state)
{
	(void)state;
	if (dt_is_verbs())
		return 0; /* it has no such transport: the same again */
	return setenv("DAT_TRANSPORT", "tcp", 1);
}

static int as_before(void **state)
{
	(void)state;
	return unsetenv("DAT_TRANSPORT");
}

int main(void)
{
#define OVER_TCP(f) cmocka_unit_test_setup_teardown(f, over_tcp, as_before)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors__closed_while_idle__no_spin_and_closes),
		cmocka_unit_test(descriptors__closed_with_a_deadline__no_spin_and_closes),
		cmocka_unit_test(descriptors__closed_and_reused__left_alone),
		OVER_TCP(descriptors__closed_while_idle__no_spin_and_closes),
		OVER_TCP(descriptors__closed_with_a_deadline__no_spin_and_closes),
		OVER_TCP(descriptors__closed_and_reused__left_alone),
	};
#undef OVER_TCP

	return cmocka_run_group_tests(tests, NULL, NULL);
}
