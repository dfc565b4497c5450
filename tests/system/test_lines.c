// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two processes with several connections that all move large messages, each through its own rings:
 * no byte is wrong, and no connection waits for another one that is blocked, ends, or dies with its
 * process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dto_util.h"

#define LINES 4u
#define MESSAGE 300007u /* bytes: more than a ring holds; segments do not end where entries do */
#define ROUNDS (DT_SLOW ? 2u : 12u)

struct team_info {
	DAT_CONN_QUAL qual;
	DAT_RMR_TRIPLET in, out;
};

/* One of the two processes. It sends from `out` and receives into `in`. */
struct team {
	struct dt_ia ia;
	struct dt_listener listener; /* the child's */
	struct dt_ep line[LINES];
	struct dt_buf out, in; /* LINES * MESSAGE each */
	struct team_info far;
};

/* --- lines --- */

static void line_up(struct team *team, uint32_t i, bool is_child)
{
	struct dt_ep *line = &team->line[i];

	dt_ep_create(&team->ia, team->ia.pz, NULL, line);
	if (is_child)
		dt_ok(dat_cr_accept(dt_request(&team->listener), line->ep, 0, NULL));
	else
		dt_connect(&team->ia, line->ep, team->far.qual);
	dt_expect_conn(line->conn, line->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void team_open(struct team *team, struct dt_peer *peer, bool is_child)
{
	struct team_info mine = {0};

	memset(team, 0, sizeof(*team));
	dt_ia_open(&team->ia);
	dt_buf_create(&team->ia, team->ia.pz, &team->out, LINES * MESSAGE, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&team->ia, team->ia.pz, &team->in, LINES * MESSAGE, DAT_MEM_PRIV_ALL_FLAG);
	if (is_child) {
		dt_listen(&team->ia, &team->listener);
		mine.qual = team->listener.qual;
	}
	mine.in = dt_rseg(&team->in, 0, LINES * MESSAGE);
	mine.out = dt_rseg(&team->out, 0, LINES * MESSAGE);
	dt_peer_send(peer, &mine, sizeof(mine));
	dt_peer_recv(peer, &team->far, sizeof(team->far));
	for (uint32_t i = 0; i < LINES; i++)
		line_up(team, i, is_child);
}

static void team_close(struct team *team)
{
	dt_no_event(team->ia.async);
	dt_ia_abort(&team->ia);
	dt_mem_free(team->in.p, team->in.mapped);
	dt_mem_free(team->out.p, team->out.mapped);
}

/* Where the bytes of that line are. */
static unsigned char *part(const struct dt_buf *buf, uint32_t i)
{
	return buf->p + (size_t)i * MESSAGE;
}

static DAT_RMR_TRIPLET far_part(DAT_RMR_TRIPLET whole, uint32_t i)
{
	whole.target_address += (size_t)i * MESSAGE;
	whole.segment_length = MESSAGE;
	return whole;
}

/* A message in three uneven segments. */
static void cut(const struct dt_buf *buf, uint32_t i, DAT_LMR_TRIPLET *iov_out)
{
	static const size_t cuts[] = {0, 33333, 200001, MESSAGE};

	for (size_t n = 0; n < 3; n++)
		iov_out[n] = dt_seg(buf, (size_t)i * MESSAGE + cuts[n], cuts[n + 1] - cuts[n]);
}

static void send_part(struct team *team, uint32_t i, uint32_t seed)
{
	DAT_LMR_TRIPLET iov[3];

	cut(&team->out, i, iov);
	dt_fill(part(&team->out, i), MESSAGE, seed);
	dt_ok(dat_ep_post_send(team->line[i].ep, 3, iov, dt_cookie(seed), 0));
}

static void receive_part(struct team *team, uint32_t i, uint32_t seed)
{
	DAT_LMR_TRIPLET iov[3];

	/* other borders than those of the sender */
	cut(&team->in, i, iov);
	iov[0].segment_length -= 1000;
	iov[1].virtual_address -= 1000;
	iov[1].segment_length += 1000;
	memset(part(&team->in, i), RIG_FILL, MESSAGE);
	dt_ok(dat_ep_post_recv(team->line[i].ep, 3, iov, dt_cookie(seed), 0));
}

static void check_received(struct team *team, uint32_t i, uint32_t seed, uint32_t far_seed)
{
	expect_received(&team->line[i], seed, MESSAGE);
	dt_check_pattern(part(&team->in, i), MESSAGE, far_seed);
}

static uint32_t seed_of(uint32_t round, uint32_t i, bool is_child)
{
	return 1 + round * 2 * LINES + i * 2 + is_child;
}

/* Every line sends and receives one message at the same time. */
static void exchange(struct team *team, struct dt_peer *peer, uint32_t first, uint32_t round,
		     bool is_child)
{
	for (uint32_t i = first; i < LINES; i++)
		receive_part(team, i, seed_of(round, i, is_child));
	dt_peer_sync(peer);
	for (uint32_t i = first; i < LINES; i++)
		send_part(team, i, seed_of(round, i, is_child));
	for (uint32_t i = first; i < LINES; i++) {
		check_received(team, i, seed_of(round, i, is_child), seed_of(round, i, !is_child));
		expect_sent(&team->line[i], seed_of(round, i, is_child), MESSAGE);
	}
}

/* --- all at once --- */

/* For the thread sanitizer: orders this thread with those of the library (far_order). */
static void order_lines(struct team *team)
{
	for (uint32_t i = 0; DT_SLOW && i < LINES; i++)
		dt_ep_state(team->line[i].ep);
}

/* Each end of each line writes to and reads from the other. */
static void rdma_exchange(struct team *team, struct dt_peer *peer, uint32_t round, bool is_child)
{
	memset(team->in.p, RIG_FILL, LINES * MESSAGE);
	for (uint32_t i = 0; i < LINES; i++)
		dt_fill(part(&team->out, i), MESSAGE, seed_of(round, i, is_child));
	order_lines(team);
	dt_peer_sync(peer);
	/* the even lines are written, the odd ones read */
	for (uint32_t i = 0; i < LINES; i++) {
		DAT_RMR_TRIPLET to = far_part(team->far.in, i), from = far_part(team->far.out, i);
		DAT_LMR_TRIPLET iov[3];

		cut(i % 2 ? &team->in : &team->out, i, iov);
		if (i % 2)
			dt_ok(dat_ep_post_rdma_read(team->line[i].ep, 3, iov, dt_cookie(i), &from,
						    0));
		else
			dt_ok(dat_ep_post_rdma_write(team->line[i].ep, 3, iov, dt_cookie(i), &to,
						     0));
	}
	for (uint32_t i = 0; i < LINES; i++)
		expect_sent(&team->line[i], i, MESSAGE);
	dt_peer_sync(peer);
	order_lines(team);
	for (uint32_t i = 0; i < LINES; i++)
		dt_check_pattern(part(&team->in, i), MESSAGE, seed_of(round, i, !is_child));
	order_lines(team);
	dt_peer_sync(peer);
}

static void all_at_once(struct team *team, struct dt_peer *peer, bool is_child)
{
	team_open(team, peer, is_child);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		exchange(team, peer, 0, round, is_child);
		rdma_exchange(team, peer, round, is_child);
	}
	dt_peer_sync(peer);
	team_close(team);
}

static struct team the_team;

static void all_at_once_child(struct dt_peer *peer, void *arg)
{
	(void)arg;
	all_at_once(&the_team, peer, true);
}

/* EP-SEND-02 EP-RECV-03 EP-RDMAW-43 EP-RDMAR-40 DTO-50 */
static void transfers__all_lines_at_once__every_byte_is_right(void **state)
{
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, all_at_once_child, NULL);
	all_at_once(&the_team, &peer, false);
	dt_peer_join(&peer);
}

/* --- blocked lines --- */

#define HELD 2u /* lines whose messages find no Receive */

static void held_up_child(struct dt_peer *peer, void *arg)
{
	struct team *team = &the_team;

	(void)arg;
	team_open(team, peer, true);
	dt_fill(team->out.p, MESSAGE, 77);
	dt_peer_sync(peer); /* messages wait at this side and at the sender */
	for (uint32_t round = 0; round < ROUNDS; round++)
		exchange(team, peer, HELD, round, true);
	/* waiting messages do not block requests of this side */
	for (uint32_t i = 0; i < HELD; i++) {
		const DAT_LMR_TRIPLET seg = dt_seg(&team->in, (size_t)i * MESSAGE, MESSAGE);

		post_read(&team->line[i], seg, far_part(team->far.out, i), 5, 0);
		expect_sent(&team->line[i], 5, MESSAGE);
		dt_check_pattern(part(&team->in, i), MESSAGE, 1000 + i);
	}
	dt_peer_sync(peer);
	for (uint32_t i = 0; i < HELD; i++) {
		receive_part(team, i, 1);
		check_received(team, i, 1, 1000 + i);
	}
	dt_peer_sync(peer);
	team_close(team);
}

/* DTO-104 DTO-105 DTO-117 */
static void transfers__no_receive_on_some_lines__others_continue(void **state)
{
	struct team *team = &the_team;
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, held_up_child, NULL);
	team_open(team, &peer, false);
	for (uint32_t i = 0; i < HELD; i++)
		send_part(team, i, 1000 + i);
	dt_peer_sync(&peer);
	for (uint32_t round = 0; round < ROUNDS; round++)
		exchange(team, &peer, HELD, round, false);
	dt_peer_sync(&peer);
	for (uint32_t i = 0; i < HELD; i++)
		expect_sent(&team->line[i], 1000 + i, MESSAGE);
	dt_peer_sync(&peer);
	team_close(team);
	dt_peer_join(&peer);
}

/* --- lines that end in the middle --- */

#define ENDS_AT (LINES - 1)

static void ending_child(struct dt_peer *peer, void *arg)
{
	struct team *team = &the_team;

	(void)arg;
	team_open(team, peer, true);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		dt_peer_sync(peer); /* its message has begun to arrive, and finds no Receive */
		expect_ended(&team->line[ENDS_AT], DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ep_free(&team->line[ENDS_AT]);
		line_up(team, ENDS_AT, true);
		receive_part(team, 0, round);
		dt_peer_sync(peer);
		check_received(team, 0, round, 500 + round);
	}
	dt_peer_sync(peer);
	team_close(team);
}

/*
 * DTO-105 EP-DISC-09: Messages under way on a line that ends do not hold up the others, nor the
 * line that follows it.
 */
static void disconnect__large_messages_under_way__other_lines_continue(void **state)
{
	struct team *team = &the_team;
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, ending_child, NULL);
	team_open(team, &peer, false);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct dt_ep *line = &team->line[ENDS_AT];

		send_part(team, ENDS_AT, 1);
		dt_peer_sync(&peer);
		dt_ok(dat_ep_disconnect(line->ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_request(line, 1, DAT_DTO_ERR_FLUSHED);
		expect_ended(line, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ep_free(line);
		line_up(team, ENDS_AT, false);
		dt_peer_sync(&peer);
		send_part(team, 0, 500 + round);
		expect_sent(&team->line[0], 500 + round, MESSAGE);
	}
	dt_peer_sync(&peer);
	team_close(team);
	dt_peer_join(&peer);
}

/* --- a process that dies --- */

static void dying_child(struct dt_peer *peer, void *arg)
{
	struct team *team = &the_team;
	DAT_EVENT event;

	(void)arg;
	team_open(team, peer, true);
	dt_fill(team->out.p, LINES * MESSAGE, 9);
	for (uint32_t i = 0; i < LINES; i++)
		receive_part(team, i, 1);
	dt_peer_sync(peer);
	for (;;) { /* until it is killed */
		for (uint32_t i = 0; i < LINES; i++) {
			const DAT_RMR_TRIPLET to = far_part(team->far.in, i);

			(void)dat_evd_dequeue(team->line[i].request, &event);
			(void)dat_ep_post_rdma_write(
				team->line[i].ep, 1,
				&(DAT_LMR_TRIPLET){dt_seg(&team->out, 0, MESSAGE).lmr_context, 0,
						   (uintptr_t)team->out.p, MESSAGE},
				dt_cookie(1), &to, 0);
		}
	}
}

/* The line is broken, and all its requests have completed. */
static void expect_dead(struct dt_ep *line, unsigned posted)
{
	dt_expect_conn(line->conn, line->ep, DAT_CONNECTION_EVENT_BROKEN);
	while (posted--)
		(void)dt_event(line->request);
	expect_quiet(line);
}

/* EP-STATE-44 DTO-105: the lines of another process are not affected */
static void process_killed__large_transfers_both_ways__others_continue(void **state)
{
	static struct team victims;
	struct team *team = &the_team;
	struct dt_peer victim, peer;

	(void)state;
	dt_peer_start(&victim, dying_child, NULL);
	dt_peer_start(&peer, all_at_once_child, NULL);
	team_open(team, &peer, false);
	team_open(&victims, &victim, false);
	memset(victims.in.p, RIG_FILL, LINES * MESSAGE);
	order_lines(&victims);
	dt_peer_sync(&victim);
	for (uint32_t i = 0; i < LINES; i++) {
		send_part(&victims, i, 1);
		send_part(&victims, i, 1);
	}
	/* it is in the middle of it */
	for (uint32_t i = 0; i < LINES; i++)
		dt_until(dto_is_written, part(&victims.in, i));
	dt_peer_kill(&victim);
	for (uint32_t i = 0; i < LINES; i++)
		expect_dead(&victims.line[i], 2);
	team_close(&victims);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		exchange(team, &peer, 0, round, false);
		rdma_exchange(team, &peer, round, false);
	}
	dt_peer_sync(&peer);
	team_close(team);
	dt_peer_join(&peer);
}

/* --- descriptors exhausted --- */

/* From now on the process can open no descriptor. */
static void use_up_descriptors(void)
{
	struct rlimit limit = {256, 256};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (fcntl(0, F_DUPFD_CLOEXEC, 0) >= 0)
		;
	assert_int_equal(errno, EMFILE);
}

static void exhausted_child(struct dt_peer *peer, void *arg)
{
	struct team *team = &the_team;

	(void)arg;
	team_open(team, peer, true);
	use_up_descriptors();
	for (uint32_t round = 0; round < 2; round++)
		exchange(team, peer, 0, round, true);
	dt_peer_sync(peer);
	team_close(team);
}

/* EP-SEND-02 DTO-50: Neither side needs a descriptor to move bytes. */
static void transfers__no_descriptor_left__every_byte_is_right(void **state)
{
	struct team *team = &the_team;
	struct dt_peer peer;

	(void)state;
	dt_peer_start(&peer, exhausted_child, NULL);
	team_open(team, &peer, false);
	for (uint32_t round = 0; round < 2; round++)
		exchange(team, &peer, 0, round, false);
	dt_peer_sync(&peer);
	team_close(team);
	dt_peer_join(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfers__all_lines_at_once__every_byte_is_right),
		cmocka_unit_test(transfers__no_receive_on_some_lines__others_continue),
		cmocka_unit_test(disconnect__large_messages_under_way__other_lines_continue),
		cmocka_unit_test(process_killed__large_transfers_both_ways__others_continue),
		cmocka_unit_test(transfers__no_descriptor_left__every_byte_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
