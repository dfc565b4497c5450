// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two hosts that connect, transfer and disconnect without a pause, over several connections at once
 * and with random lengths, operations and ends:
 *
 *   net_soak [SECONDS [SEED]]
 *
 * Every byte is verified, and at the end no descriptor is left. Prints what was done.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptors.h"
#include "stream.h"

enum { FOLLOWER, LEADER, HOSTS };
/* how a connection ends */
enum { END_IN_ORDER, END_WITH_WORK, END_BY_FOLLOWER, ENDS };

#define LANES 3u	/* connections at a time */
#define ROUNDS_MOST 12u /* of one connection */
#define LOOK_US 100000u

static unsigned seconds = 600;
static uint32_t first_seed = 1;

/* One connection after the other, with one thread on each host. */
struct lane {
	const struct net_host *host;
	struct dt_ia *ia;
	struct dt_listener listener; /* of the follower */
	DAT_CONN_QUAL qual;
	uint32_t seed;
	pthread_t thread;
};

/* What the peer may see of the end that the other side has chosen. */
static void expect_end(struct stream *stream)
{
	dt_expect_conn(stream->ep.conn, stream->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void run_leader(struct stream *stream, const struct net_host *host, unsigned rounds,
		       unsigned end)
{
	for (unsigned i = 0; i < rounds || end == END_BY_FOLLOWER; i++) {
		if (!stream_lead(stream)) {
			assert_int_equal(end, END_BY_FOLLOWER);
			break;
		}
		host->shared->rounds[LEADER]++;
	}
	if (end == END_WITH_WORK)
		stream_leave_work(stream);
	if (end != END_BY_FOLLOWER)
		dt_ok(dat_ep_disconnect(stream->ep.ep, end == END_WITH_WORK
							       ? DAT_CLOSE_ABRUPT_FLAG
							       : DAT_CLOSE_GRACEFUL_FLAG));
	expect_end(stream);
}

static void run_follower(struct stream *stream, unsigned rounds, unsigned end)
{
	unsigned i;

	for (i = 0; i < rounds; i++)
		assert_true(stream_follow(stream));
	if (end == END_BY_FOLLOWER)
		dt_ok(dat_ep_disconnect(stream->ep.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_end(stream);
}

static void run_connection(struct lane *lane, DAT_CR_HANDLE cr, uint32_t seed)
{
	unsigned rounds = stream_random(seed, 1) % ROUNDS_MOST;
	unsigned end = stream_random(seed, 2) % ENDS;
	struct sockaddr_storage address;
	struct stream stream;

	stream_create(&stream, lane->ia, seed);
	stream.is_random = true;
	if (cr) {
		stream_accept(&stream, cr);
	} else {
		net_address(lane->host->family, FOLLOWER, &address);
		stream_connect(&stream, &address, lane->qual);
	}
	dt_expect_conn(stream.ep.conn, stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(&stream));
	stream_greet(&stream);
	if (cr)
		run_follower(&stream, rounds, end);
	else
		run_leader(&stream, lane->host, rounds, end);
	stream_free(&stream);
}

/* The next request, or NULL: the leader has ended. */
static DAT_CR_HANDLE next_request(struct lane *lane)
{
	DAT_COUNT more;
	DAT_EVENT event;

	while (dat_evd_wait(lane->listener.evd, LOOK_US, 1, &event, &more) != DAT_SUCCESS)
		if (lane->host->shared->is_done)
			return DAT_HANDLE_NULL;
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	uint64_t number = 0;

	for (;; number++) {
		uint32_t seed = stream_random(lane->seed, number);
		DAT_CR_HANDLE cr = DAT_HANDLE_NULL;

		if (lane->host->index == FOLLOWER) {
			cr = next_request(lane);
			if (!cr)
				break;
			lane->host->shared->rounds[FOLLOWER]++;
		} else if (lane->host->shared->is_over) {
			break;
		}
		run_connection(lane, cr, seed);
	}
	return NULL;
}

static bool has_descriptors_of_before(void *arg)
{
	usleep(1000);
	return count_descriptors() == *(const unsigned *)arg;
}

static void soak(const struct net_host *host)
{
	struct lane lanes[LANES];
	uint64_t quals[NET_MAX];
	struct dt_ia ia;
	unsigned before = 0;

	memset(lanes, 0, sizeof(lanes));
	dt_ia_open(&ia);
	for (unsigned i = 0; i < LANES; i++) {
		if (host->index == FOLLOWER)
			dt_listen(&ia, &lanes[i].listener);
		/* before the exchange after which the leader connects */
		before = count_descriptors();
		net_exchange(host, lanes[i].listener.qual, quals);
		lanes[i].host = host;
		lanes[i].ia = &ia;
		lanes[i].qual = quals[FOLLOWER];
		lanes[i].seed = first_seed + i;
	}
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]), 0);
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_join(lanes[i].thread, NULL), 0);
	if (host->index == LEADER)
		host->shared->is_done = true;
	else /* the leader's first connection has started its service thread */
		dt_until(has_descriptors_of_before, &before);
	for (unsigned i = 0; i < LANES; i++)
		dt_unlisten(&lanes[i].listener);
	dt_ia_close(&ia);
}

static void hosts__random_work__all_bytes_right(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, HOSTS, NET_IPV4, soak);
	for (unsigned i = 0; i < LANES; i++)
		net_pass_on(&net);
	for (unsigned second = 0; second < seconds; second++) {
		uint64_t rounds = net.shared->rounds[LEADER];
		uint64_t limit = dt_now_us() + DT_WAIT_US;

		sleep(1);
		while (net.shared->rounds[LEADER] == rounds && dt_now_us() < limit)
			usleep(1000);
		assert_true(net.shared->rounds[LEADER] > rounds);
	}
	net.shared->is_over = true;
	printf("%u s: %llu connections, %llu rounds of verified transfers\n", seconds,
	       (unsigned long long)net.shared->rounds[FOLLOWER],
	       (unsigned long long)net.shared->rounds[LEADER]);
	net_join(&net);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts__random_work__all_bytes_right),
	};

	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = (uint32_t)strtoul(argv[2], NULL, 10);
	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
