// SPDX-License-Identifier: BSD-2-Clause
/*
 * An idle process costs nothing, in whatever state its connections are: the threads of the library
 * sleep, and nothing wakes them. Over shared memory and over TCP.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "conn_remote.h"

#define QUIET_US 100000u /* no thread may run for so long */
#define THREADS_MAX 32
#define LARGE (1u << 20)
#define SENDS 16u /* of LARGE bytes: more than sockets, rings and pools hold */

/* --- the threads of the library --- */

struct thread {
	long id;
	unsigned long switches; /* how often it has gone to sleep or was preempted */
	bool is_asleep;
};

struct threads {
	struct thread list[THREADS_MAX];
	size_t count;
};

/* Those that ran before the adapter was opened are not the library's. */
static struct threads before;

static bool read_thread(long id, struct thread *thread)
{
	char path[64], line[256], state;
	unsigned long count;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/status", id);
	file = fopen(path, "re");
	if (!file)
		return false;
	*thread = (struct thread){.id = id};
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "State: %c", &state) == 1)
			thread->is_asleep = state == 'S';
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %lu", &count) == 1)
			thread->switches += count;
	}
	fclose(file);
	return true;
}

static bool is_of_before(long id)
{
	for (size_t i = 0; i < before.count; i++)
		if (before.list[i].id == id)
			return true;
	return false;
}

static void read_threads(struct threads *threads)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;

	assert_non_null(tasks);
	threads->count = 0;
	while ((entry = readdir(tasks)) != NULL) {
		const long id = strtol(entry->d_name, NULL, 10);

		if (id <= 0 || is_of_before(id))
			continue;
		assert_true(threads->count < THREADS_MAX);
		threads->count += read_thread(id, &threads->list[threads->count]);
	}
	closedir(tasks);
}

/* What was seen when some thread ran last. */
struct watch {
	struct threads last;
	uint64_t since_us;
};

static bool have_slept(const struct threads *threads, const struct threads *last)
{
	if (threads->count != last->count)
		return false;
	for (size_t i = 0; i < threads->count; i++)
		if (!threads->list[i].is_asleep || threads->list[i].id != last->list[i].id ||
		    threads->list[i].switches != last->list[i].switches)
			return false;
	return true;
}

/* A thread that runs all the time is never asleep, however little it gets of a busy processor. */
static bool is_quiet(void *arg)
{
	struct watch *watch = arg;
	struct threads now;

	read_threads(&now);
	assert_int_not_equal(now.count, 0);
	if (have_slept(&now, &watch->last))
		return dt_now_us() - watch->since_us >= QUIET_US;
	watch->last = now;
	watch->since_us = dt_now_us();
	return false;
}

static void check_idle(void)
{
	struct watch watch = {.last.count = 0};

	dt_until(is_quiet, &watch);
}

/* --- two endpoints of this process --- */

/* More than the peer takes, because it has posted no Receive. */
static void post_sends(struct dt_ep *ep, const struct dt_buf *buf)
{
	const DAT_LMR_TRIPLET segment = dt_seg(buf, 0, LARGE);

	for (uint64_t i = 0; i < SENDS; i++) {
		DAT_LMR_TRIPLET copy = segment;

		dt_ok(dat_ep_post_send(ep->ep, 1, &copy, dt_cookie(i),
				       DAT_COMPLETION_DEFAULT_FLAG));
	}
}

static void check_last_send_waits(struct dt_ep *ep)
{
	DAT_BOOLEAN is_idle = DAT_TRUE;

	dt_ok(dat_ep_get_status(ep->ep, NULL, NULL, &is_idle));
	assert_int_equal(is_idle, DAT_FALSE);
}

/* GEN-38 */
static void connected__nothing_posted__idle(void **state)
{
	struct remote_fixture *r = *state;

	check_idle(); /* a listener only */
	conn_link(r->f, &r->f->a, &r->f->b);
	check_idle();
	conn_transfer(r->f, &r->f->a, &r->f->b);
	check_idle();
	conn_post_recv(r->f->b.ep, &r->f->buf, CONN_B_RECEIVES_AT, 1);
	check_idle();
	dt_ok(dat_ep_disconnect(r->f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(r->f->a.conn, r->f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(r->f->b.conn, r->f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	check_idle();
}

/* GEN-38 */
static void send__no_receive__idle(void **state)
{
	struct remote_fixture *r = *state;

	conn_link(r->f, &r->f->a, &r->f->b);
	conn_post_send(r->f->a.ep, &r->f->buf, CONN_A_SENDS_AT, 1);
	conn_post_send(r->f->b.ep, &r->f->buf, CONN_B_SENDS_AT, 1);
	check_idle();
}

/* GEN-38 */
static void sends__flow_controlled_and_draining__idle(void **state)
{
	struct remote_fixture *r = *state;
	struct dt_buf large;

	dt_buf_create(&r->f->ia, r->f->ia.pz, &large, LARGE, DAT_MEM_PRIV_ALL_FLAG);
	conn_link(r->f, &r->f->a, &r->f->b);
	post_sends(&r->f->a, &large);
	check_idle();
	check_last_send_waits(&r->f->a);
	post_sends(&r->f->b, &large);
	check_idle();
	check_last_send_waits(&r->f->a);
	check_last_send_waits(&r->f->b);
	dt_ok(dat_ep_disconnect(r->f->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	assert_int_equal(dt_ep_state(r->f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	check_idle();
	assert_int_equal(dt_ep_state(r->f->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	dt_ok(dat_ep_disconnect(r->f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(r->f->a.conn, r->f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_buf_free(&large);
}

/* GEN-38 */
static void request__not_answered__idle(void **state)
{
	struct remote_fixture *r = *state;
	DAT_CR_HANDLE cr;

	dt_connect(&r->f->ia, r->f->a.ep, r->f->listener.qual);
	cr = dt_request(&r->f->listener);
	check_idle();
	dt_ok(dat_cr_reject(cr));
	dt_expect_conn(r->f->a.conn, r->f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	check_idle();
}

/* --- a peer that is stopped --- */

/* GEN-38 */
static void connect__listener_stopped__idle(void **state)
{
	struct remote_fixture *r = *state;
	const DAT_CONN_QUAL qual = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);

	dt_peer_stop(&r->peer);
	dt_connect(&r->f->ia, r->f->a.ep, qual);
	check_idle();
}

/* GEN-38 */
static void accepted__asker_stopped__idle(void **state)
{
	struct remote_fixture *r = *state;
	DAT_CR_HANDLE cr;

	remote_connect(&r->peer, r->f->listener.qual);
	cr = dt_request(&r->f->listener);
	dt_peer_stop(&r->peer);
	dt_ok(dat_cr_accept(cr, r->f->b.ep, 0, NULL));
	check_idle();
}

/* GEN-38 */
static void connected__peer_stopped__idle_and_after_the_end(void **state)
{
	struct remote_fixture *r = *state;
	struct dt_buf large;

	dt_buf_create(&r->f->ia, r->f->ia.pz, &large, LARGE, DAT_MEM_PRIV_ALL_FLAG);
	remote_link_passive(r);
	dt_peer_stop(&r->peer);
	post_sends(&r->f->b, &large);
	check_idle();
	check_last_send_waits(&r->f->b);
	dt_ok(dat_ep_disconnect(r->f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(r->f->b.conn, r->f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	check_idle();
	dt_buf_free(&large);
}

/* GEN-38 */
static void disconnected__peer_stopped__idle(void **state)
{
	struct remote_fixture *r = *state;

	remote_link_passive(r);
	dt_peer_stop(&r->peer);
	dt_ok(dat_ep_disconnect(r->f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(r->f->b.conn, r->f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	check_idle();
}

/* --- both transports --- */

static void *nothing(void *arg)
{
	return arg;
}

/* TSan starts a thread of its own, which runs every 100 ms, when the program starts its first. */
static int start_sanitizers_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return 0;
}

static int setup(void **state, const char *transport)
{
	setenv("DAT_TRANSPORT", transport, 1);
	/* longer than check_idle waits: the state must be idle, not its end */
	setenv("DAT_PEER_TIMEOUT_MS", "60000", 1);
	before.count = 0;
	read_threads(&before);
	return remote_setup(state);
}

static int setup_shm(void **state)
{
	return setup(state, "shm");
}

static int setup_tcp(void **state)
{
	return setup(state, "tcp");
}

static int teardown(void **state)
{
	unsetenv("DAT_TRANSPORT");
	unsetenv("DAT_PEER_TIMEOUT_MS");
	return remote_teardown(state);
}

int main(void)
{
#define SHM(f)                                                                                     \
	{                                                                                          \
#f " (shm)", f, setup_shm, teardown, NULL                                          \
	}
#define TCP(f)                                                                                     \
	{                                                                                          \
#f " (tcp)", f, setup_tcp, teardown, NULL                                          \
	}
	const struct CMUnitTest tests[] = {
		SHM(connected__nothing_posted__idle),
		SHM(send__no_receive__idle),
		SHM(sends__flow_controlled_and_draining__idle),
		SHM(request__not_answered__idle),
		SHM(connect__listener_stopped__idle),
		SHM(accepted__asker_stopped__idle),
		SHM(connected__peer_stopped__idle_and_after_the_end),
		SHM(disconnected__peer_stopped__idle),
		TCP(connected__nothing_posted__idle),
		TCP(send__no_receive__idle),
		TCP(sends__flow_controlled_and_draining__idle),
		TCP(request__not_answered__idle),
		TCP(connect__listener_stopped__idle),
		TCP(accepted__asker_stopped__idle),
		TCP(connected__peer_stopped__idle_and_after_the_end),
		TCP(disconnected__peer_stopped__idle),
	};

	return cmocka_run_group_tests_name("idle", tests, start_sanitizers_thread, NULL);
}
