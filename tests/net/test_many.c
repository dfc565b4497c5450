// SPDX-License-Identifier: BSD-2-Clause
/* Many connections: eight hosts, each with each; hundreds into one service point. */
#include "meet.h"

#define CALLERS 500u
#define CALL_BYTES 4096u

/* --- each with each --- */

/* IWCM-59: all operations on 28 connections at once, verified */
static void hosts__each_with_each__all_bytes_right(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, NET_MAX, NET_IPV4, meet_all);
	net_pass_on(&net);
	net_join(&net);
}

/* --- one service point --- */

struct crowd {
	struct dt_ia ia;
	DAT_EVD_HANDLE conn, recv, request;
	DAT_EP_HANDLE ep[CALLERS];
	struct dt_buf in, out; /* a part for each */
};

static void crowd_create(struct crowd *crowd)
{
	dt_ia_open(&crowd->ia);
	crowd->conn = dt_evd_create(&crowd->ia, 4 * CALLERS, DAT_EVD_CONNECTION_FLAG);
	crowd->recv = dt_evd_create(&crowd->ia, 4 * CALLERS, DAT_EVD_DTO_FLAG);
	crowd->request = dt_evd_create(&crowd->ia, 4 * CALLERS, DAT_EVD_DTO_FLAG);
	dt_buf_create(&crowd->ia, crowd->ia.pz, &crowd->in, (size_t)CALLERS * CALL_BYTES,
		      DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&crowd->ia, crowd->ia.pz, &crowd->out, (size_t)CALLERS * CALL_BYTES,
		      DAT_MEM_PRIV_ALL_FLAG);
	for (unsigned i = 0; i < CALLERS; i++) {
		DAT_LMR_TRIPLET to = dt_seg(&crowd->in, (size_t)i * CALL_BYTES, CALL_BYTES);

		dt_ok(dat_ep_create(crowd->ia.ia, crowd->ia.pz, crowd->recv, crowd->request,
				    crowd->conn, NULL, &crowd->ep[i]));
		dt_ok(dat_ep_post_recv(crowd->ep[i], 1, &to, dt_cookie(i),
				       DAT_COMPLETION_DEFAULT_FLAG));
	}
}

static void crowd_free(struct crowd *crowd)
{
	for (unsigned i = 0; i < CALLERS; i++)
		dt_ok(dat_ep_free(crowd->ep[i]));
	dt_buf_free(&crowd->in);
	dt_buf_free(&crowd->out);
	dt_ok(dat_evd_free(crowd->conn));
	dt_ok(dat_evd_free(crowd->recv));
	dt_ok(dat_evd_free(crowd->request));
	dt_ia_close(&crowd->ia);
}

static void crowd_events(struct crowd *crowd, DAT_EVENT_NUMBER number)
{
	for (unsigned i = 0; i < CALLERS; i++)
		assert_int_equal(dt_event(crowd->conn).event_number, number);
}

static void crowd_send(struct crowd *crowd, unsigned i, uint32_t seed)
{
	DAT_LMR_TRIPLET from = dt_seg(&crowd->out, (size_t)i * CALL_BYTES, CALL_BYTES);

	dt_fill(crowd->out.p + (size_t)i * CALL_BYTES, CALL_BYTES, seed);
	dt_ok(dat_ep_post_send(crowd->ep[i], 1, &from, dt_cookie(i), DAT_COMPLETION_SUPPRESS_FLAG));
}

/* Which endpoint has received? */
static unsigned crowd_received(struct crowd *crowd)
{
	const DAT_EVENT event = dt_event(crowd->recv);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	assert_int_equal(dto->transfered_length, CALL_BYTES);
	assert_in_range(dto->user_cookie.as_64, 0, CALLERS - 1);
	return (unsigned)dto->user_cookie.as_64;
}

/* The seed of a message is its first word, so that the listener can check and answer it. */
static uint32_t seed_of(const struct crowd *crowd, unsigned i)
{
	for (uint32_t seed = 0; seed < CALLERS; seed++) {
		unsigned char first[16];

		dt_fill(first, sizeof(first), seed);
		if (!memcmp(first, crowd->in.p + (size_t)i * CALL_BYTES, sizeof(first)))
			return seed;
	}
	fail_msg("a message that nobody has sent");
	return 0;
}

static void be_called(struct crowd *crowd, const struct net_host *host)
{
	DAT_EVD_HANDLE requests = dt_evd_create(&crowd->ia, CALLERS, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL qual = dt_unused_qual();
	uint64_t quals[NET_MAX];
	DAT_PSP_HANDLE psp;

	dt_ok(dat_psp_create(crowd->ia.ia, qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	net_exchange(host, qual, quals);
	for (unsigned i = 0; i < CALLERS; i++) {
		const DAT_EVENT event = dt_event(requests);

		dt_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, crowd->ep[i],
				    0, NULL));
	}
	crowd_events(crowd, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (unsigned count = 0; count < CALLERS; count++) {
		unsigned i = crowd_received(crowd);
		uint32_t seed = seed_of(crowd, i);

		dt_check_pattern(crowd->in.p + (size_t)i * CALL_BYTES, CALL_BYTES, seed);
		crowd_send(crowd, i, seed + CALLERS);
	}
	crowd_events(crowd, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_evd_free(requests));
}

static void call_all(struct crowd *crowd, const struct net_host *host)
{
	struct sockaddr_storage address;
	uint64_t quals[NET_MAX];

	net_exchange(host, 0, quals);
	net_address(host->family, 0, &address);
	for (unsigned i = 0; i < CALLERS; i++)
		dt_ok(dat_ep_connect(crowd->ep[i], (DAT_IA_ADDRESS_PTR)&address, quals[0],
				     DT_WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG));
	crowd_events(crowd, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (unsigned i = 0; i < CALLERS; i++)
		crowd_send(crowd, i, i);
	for (unsigned count = 0; count < CALLERS; count++) {
		unsigned i = crowd_received(crowd);

		dt_check_pattern(crowd->in.p + (size_t)i * CALL_BYTES, CALL_BYTES, i + CALLERS);
	}
	for (unsigned i = 0; i < CALLERS; i++)
		dt_ok(dat_ep_disconnect(crowd->ep[i], DAT_CLOSE_GRACEFUL_FLAG));
	crowd_events(crowd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void join_crowd(const struct net_host *host)
{
	static struct crowd crowd;

	crowd_create(&crowd);
	if (host->index)
		call_all(&crowd, host);
	else
		be_called(&crowd, host);
	crowd_free(&crowd);
}

/* IWCM-39 CONN-GEN-06: none is taken for a silent caller and dropped */
static void service_point__500_connections_at_once__all_transfer(void **state)
{
	struct net net;

	(void)state;
	net_start(&net, 2, NET_IPV4, join_crowd);
	net_pass_on(&net);
	net_join(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts__each_with_each__all_bytes_right),
		cmocka_unit_test(service_point__500_connections_at_once__all_transfer),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
