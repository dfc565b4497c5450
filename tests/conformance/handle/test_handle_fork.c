// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fork: the parent is not affected; the child cannot use inherited handles and can open an adapter.
 * Meanwhile messages run between this process and a peer.
 */
#include "copy_path.h"
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LEN 4096u

/* --- a peer that echoes --- */

/*
 * Echoes messages until the connection ends. The Receive for the next message is posted before the
 * answer is sent, because over iWARP no message may wait for one (DTO-104).
 */
static void echo(struct dt_peer *peer, void *arg)
{
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_LMR_TRIPLET seg[2];
	DAT_CONN_QUAL qual;

	(void)arg;
	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, 2 * LEN, CONF_LOCAL);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	seg[0] = dt_seg(&buf, 0, LEN);
	seg[1] = dt_seg(&buf, LEN, LEN);
	dt_ok(dat_ep_post_recv(ep.ep, 1, &seg[0], dt_cookie(0), 0));
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (unsigned i = 0;; i ^= 1) {
		const DAT_EVENT event = dt_event(ep.recv);

		if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
			break;
		dt_ok(dat_ep_post_recv(ep.ep, 1, &seg[i ^ 1], dt_cookie(0), 0));
		dt_ok(dat_ep_post_send(ep.ep, 1, &seg[i], dt_cookie(1), 0));
		dt_expect_dto(ep.request, ep.ep, 1, DAT_DTO_SUCCESS, LEN);
	}
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&ep);
	dt_buf_free(&buf);
	dt_ia_close(&ia);
}

struct line {
	struct dt_peer peer;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf out, in;
	uint32_t sent;
};

static void accept_one(struct dt_ia *ia, struct dt_peer *peer, struct dt_ep *ep)
{
	struct dt_listener listener;

	dt_listen(ia, &listener);
	dt_peer_send(peer, &listener.qual, sizeof(listener.qual));
	dt_ok(dat_cr_accept(dt_request(&listener), ep->ep, 0, NULL));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_unlisten(&listener);
}

static int setup(void **state)
{
	static struct line line;

	memset(&line, 0, sizeof(line));
	dt_peer_start(&line.peer, echo, NULL);
	dt_ia_open(&line.ia);
	dt_buf_create(&line.ia, line.ia.pz, &line.out, LEN, CONF_LOCAL);
	dt_buf_create(&line.ia, line.ia.pz, &line.in, LEN, CONF_LOCAL);
	dt_ep_create(&line.ia, line.ia.pz, NULL, &line.ep);
	accept_one(&line.ia, &line.peer, &line.ep);
	*state = &line;
	return 0;
}

static int teardown(void **state)
{
	struct line *line = *state;

	dt_ok(dat_ep_disconnect(line->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(line->ep.conn, line->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&line->ep);
	dt_buf_free(&line->out);
	dt_buf_free(&line->in);
	dt_ia_close(&line->ia);
	dt_peer_join(&line->peer);
	return 0;
}

static void send_out(struct line *line)
{
	DAT_LMR_TRIPLET out = dt_seg(&line->out, 0, LEN), in = dt_seg(&line->in, 0, LEN);

	dt_fill(line->out.p, LEN, ++line->sent);
	memset(line->in.p, 0, LEN);
	dt_ok(dat_ep_post_recv(line->ep.ep, 1, &in, dt_cookie(2), 0));
	dt_ok(dat_ep_post_send(line->ep.ep, 1, &out, dt_cookie(3), 0));
}

static void get_back(struct line *line)
{
	dt_expect_dto(line->ep.request, line->ep.ep, 3, DAT_DTO_SUCCESS, LEN);
	dt_expect_dto(line->ep.recv, line->ep.ep, 2, DAT_DTO_SUCCESS, LEN);
	dt_check_pattern(line->in.p, LEN, line->sent);
}

static void check_traffic(struct line *line)
{
	for (int i = 0; i < 5; i++) {
		send_out(line);
		get_back(line);
	}
}

/* --- the child --- */

struct heritage {
	struct world *world;
	struct line *line;
};

static void refuse_all(struct dt_peer *peer, void *arg)
{
	struct heritage *heritage = arg;
	struct line *line = heritage->line;
	const DAT_HANDLE more[] = {line->ia.ia,	  line->ia.async, line->ia.pz,
				   line->ep.ep,	  line->ep.recv,  line->ep.request,
				   line->ep.conn, line->in.lmr,	  line->out.lmr};

	(void)peer;
	for (size_t i = 0; i < WORLD_COUNT; i++)
		world_check_dead(heritage->world->object[i].handle);
	for (size_t i = 0; i < COUNT_OF(more); i++)
		world_check_dead(more[i]);
}

/* GEN-35 GEN-34 */
static void fork__child_uses_inherited_handles__invalid_handle(void **state)
{
	struct world world;
	struct heritage heritage = {.world = &world, .line = *state};
	struct dt_peer child;

	world_open(&world);
	send_out(heritage.line);
	dt_peer_start(&child, refuse_all, &heritage);
	get_back(heritage.line);
	dt_peer_join(&child);
	world_check_alive(&world);
	world_close(&world);
	check_traffic(heritage.line);
}

static void open_and_work(struct dt_peer *peer, void *arg)
{
	struct heritage *heritage = arg;
	struct dt_pair pair;
	struct dt_buf buf;

	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, LEN, DAT_MEM_PRIV_ALL_FLAG);
	for (int i = 0; i < 5; i++) {
		dt_fill(buf.p, LEN / 2, (uint32_t)i);
		conf_write(&pair, dt_seg(&buf, 0, LEN / 2), dt_rseg(&buf, LEN / 2, LEN / 2));
		dt_check_pattern(buf.p + LEN / 2, LEN / 2, (uint32_t)i);
		conf_send(&pair, dt_seg(&buf, 0, 64), dt_seg(&buf, 64, 64));
	}
	/* Inherited handles are refused while this process has live objects, too. */
	refuse_all(peer, heritage);
	dt_peer_sync(peer);
	dt_buf_free(&buf);
	dt_pair_close(&pair);
}

/* GEN-35 GEN-34 */
static void fork__child_opens_anew__works_beside_the_parent(void **state)
{
	struct world world;
	struct heritage heritage = {.world = &world, .line = *state};
	struct dt_peer child;

	if (DT_TSAN) { /* it cannot create threads after a fork of a threaded process */
		copy_path_skip();
		skip();
	}
	world_open(&world);
	dt_peer_start(&child, open_and_work, &heritage);
	check_traffic(heritage.line);
	dt_peer_sync(&child);
	check_traffic(heritage.line);
	dt_peer_join(&child);
	world_check_alive(&world);
	world_close(&world);
}

/* --- ends of the child --- */

enum end { END_EXIT, END_EXIT_AT_ONCE, END_EXEC, END_KILL, END_COUNT };

static pid_t fork_and_end(enum end end)
{
	const pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A leak checker would report the parent's memory, whose threads do not exist here. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	switch (end) {
	case END_EXEC:
		execl("/bin/true", "true", (char *)NULL);
		_exit(2);
	case END_EXIT:
		fclose(stdin); /* nothing of cmocka's is buffered: flushed before the fork */
		if (!DT_SLOW)
			exit(0);
		_exit(0);
	case END_KILL:
		raise(SIGKILL);
		_exit(2);
	default:
		_exit(0);
	}
}

/* GEN-34 COMPAT-42 */
static void fork__child_ends_in_each_way__parent_undisturbed(void **state)
{
	struct line *line = *state;

	for (int end = 0; end < END_COUNT; end++) {
		int status = -1;

		send_out(line);
		fflush(NULL);
		const pid_t child = fork_and_end((enum end)end);

		assert_int_not_equal(child, -1);
		get_back(line);
		check_traffic(line);
		while (waitpid(child, &status, 0) == -1)
			assert_int_equal(errno, EINTR);
		if (end == END_KILL)
			assert_int_equal(WTERMSIG(status), SIGKILL);
		else
			assert_int_equal(status, 0);
		check_traffic(line);
	}
}

/* GEN-34 COMPAT-42 */
static void system__under_traffic__no_data_lost_or_torn(void **state)
{
	struct line *line = *state;

	for (int i = 0; i < 10; i++) {
		send_out(line);
		assert_int_equal(system("exit 0"), 0);
		get_back(line);
	}
}

/* --- descriptors --- */

/* A bit per descriptor below 1024 that is open; `leaky_out` counts those that survive an exec. */
static void list_descriptors(uint64_t open_out[16], int *leaky_out)
{
	memset(open_out, 0, 16 * sizeof(*open_out));
	*leaky_out = 0;
	for (int fd = 0; fd < 1024; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		if (flags == -1)
			continue;
		open_out[fd / 64] |= 1ull << fd % 64;
		*leaky_out += !(flags & FD_CLOEXEC);
	}
}

/* GEN-34 */
static void descriptors__of_an_open_instance__close_on_exec(void **state)
{
	uint64_t before[16], during[16], after[16];
	int leaky_before, leaky_during, leaky_after;
	struct world world;

	(void)state;
	list_descriptors(before, &leaky_before);
	world_open(&world);
	list_descriptors(during, &leaky_during);
	assert_int_equal(leaky_during, leaky_before);
	world_close(&world);
	list_descriptors(after, &leaky_after);
	assert_int_equal(leaky_after, leaky_before);
}

/* --- a child that outlives its parent --- */

static void leave_a_child(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_CONN_QUAL qual;

	(void)arg;
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	const pid_t child = fork();

	assert_int_not_equal(child, -1);
	if (child == 0) {
		alarm(60); /* in case the test dies before it kills this process */
		for (;;)
			pause();
	}
	dt_peer_send(peer, &child, sizeof(child));
	for (;;)
		pause();
}

/* GEN-34 CONN-EVT-39 */
static void fork__parent_killed_while_its_child_lives__peer_sees_the_end(void **state)
{
	struct dt_peer peer;
	struct dt_ia ia;
	struct dt_ep ep;
	pid_t child = 0;

	(void)state;
	dt_peer_start(&peer, leave_a_child, NULL);
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	accept_one(&ia, &peer, &ep);
	dt_peer_recv(&peer, &child, sizeof(child));
	dt_peer_kill(&peer);
	const uint64_t died = dt_now_us();
	const DAT_EVENT event = dt_event(ep.conn);

	assert_int_equal(kill(child, SIGKILL), 0); /* it was alive until now */
	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(dt_now_us() - died < 5000000u);
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

/* --- handlers of the consumer --- */

static struct line *handled;
static unsigned freed_in_handlers;

/* Frees a region in each handler that runs in the parent. */
static void free_in_a_handler(void)
{
	struct dt_buf *buf;

	if (!handled)
		return;
	buf = freed_in_handlers++ ? &handled->in : &handled->out;
	dt_ok(dat_lmr_free(buf->lmr));
	buf->lmr = DAT_HANDLE_NULL;
}

/*
 * GEN-35 LMR-FREE-01: handlers that were installed before the library's run between them, while the
 * library holds its locks. A program may free its regions there.
 */
static void fork__region_freed_in_a_handler__returns(void **state)
{
	struct line *line = *state;
	int status;
	pid_t child;

	check_traffic(line);
	handled = line;
	alarm(60); /* a failure would hang */
	child = fork();
	if (!child)
		_exit(0);
	alarm(0);
	handled = NULL;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(freed_in_handlers, 2);
	dt_buf_free(&line->out);
	dt_buf_free(&line->in);
	dt_buf_create(&line->ia, line->ia.pz, &line->out, LEN, CONF_LOCAL);
	dt_buf_create(&line->ia, line->ia.pz, &line->in, LEN, CONF_LOCAL);
	check_traffic(line);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(fork__child_uses_inherited_handles__invalid_handle),
		T(fork__child_opens_anew__works_beside_the_parent),
		T(fork__child_ends_in_each_way__parent_undisturbed),
		T(system__under_traffic__no_data_lost_or_torn),
		T(fork__region_freed_in_a_handler__returns),
		cmocka_unit_test(descriptors__of_an_open_instance__close_on_exec),
		cmocka_unit_test(fork__parent_killed_while_its_child_lives__peer_sees_the_end),
	};

	if (pthread_atfork(free_in_a_handler, free_in_a_handler, NULL))
		return 1;
	return cmocka_run_group_tests_name("handle fork", tests, NULL, NULL);
}
