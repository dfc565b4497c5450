// SPDX-License-Identifier: BSD-2-Clause
/* Every host connects to each other one (meet.h). */
#include "meet.h"

#include <pthread.h>

#include "stream.h"

#define ROUNDS (DT_SLOW ? 6u : 24u) /* per connection */

struct link {
	struct stream stream;
	bool is_leader;
	pthread_t thread;
};

static void *run_link(void *arg)
{
	struct link *link = arg;

	dt_expect_conn(link->stream.ep.conn, link->stream.ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_true(stream_is_over_tcp(&link->stream));
	stream_greet(&link->stream);
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_true(link->is_leader ? stream_lead(&link->stream)
					    : stream_follow(&link->stream));
	if (link->is_leader)
		dt_ok(dat_ep_disconnect(link->stream.ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(link->stream.ep.conn, link->stream.ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	return NULL;
}

/* Who calls? The seed is the same on both sides. */
static unsigned caller_of(const struct net_host *host, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;
	unsigned i;

	dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	for (i = 0; i < host->count; i++) {
		struct sockaddr_storage address;

		net_address(host->family, i, &address);
		if (((struct sockaddr_in *)&address)->sin_addr.s_addr ==
		    ((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr.s_addr)
			break;
	}
	assert_in_range(i, 0, host->count - 1);
	return i;
}

/* Calls the hosts behind this one, and is called by those in front. */
void meet_all(const struct net_host *host)
{
	struct link links[NET_MAX] = {{.is_leader = false}};
	struct dt_listener listener;
	uint64_t quals[NET_MAX];
	struct dt_ia ia;

	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	net_exchange(host, listener.qual, quals);
	for (unsigned i = 0; i < host->count; i++)
		if (i != host->index)
			stream_create(&links[i].stream, &ia, i + host->index);
	for (unsigned i = host->index + 1; i < host->count; i++) {
		struct sockaddr_storage address;

		net_address(host->family, i, &address);
		links[i].is_leader = true;
		stream_connect(&links[i].stream, &address, quals[i]);
	}
	for (unsigned i = 0; i < host->index; i++) {
		DAT_CR_HANDLE cr = dt_request(&listener);

		stream_accept(&links[caller_of(host, cr)].stream, cr);
	}
	for (unsigned i = 0; i < host->count; i++)
		if (i != host->index)
			assert_int_equal(
				pthread_create(&links[i].thread, NULL, run_link, &links[i]), 0);
	for (unsigned i = 0; i < host->count; i++)
		if (i != host->index)
			assert_int_equal(pthread_join(links[i].thread, NULL), 0);
	for (unsigned i = 0; i < host->count; i++)
		if (i != host->index)
			stream_free(&links[i].stream);
	dt_unlisten(&listener);
	dt_ia_close(&ia);
}
