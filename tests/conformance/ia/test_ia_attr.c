// SPDX-License-Identifier: BSD-2-Clause
/*
 * The attributes of dat_ia_query that are not limits: the provider behaves as they state.
 * test_ia_limits.c tests limits.
 */
#include "conf.h"

#include <netinet/in.h>

/* --- the address --- */

static socklen_t address_length(const DAT_SOCK_ADDR *address)
{
	assert_true(address->sa_family == AF_INET || address->sa_family == AF_INET6);
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6);
}

/* IA-QUERY-16 IA-QUERY-17 COMPAT-22 */
static void ia_query__address__connects_and_stays(void **state)
{
	struct dt_ia *ia = *state;
	struct sockaddr_storage copy = {0};
	struct dt_listener listener;
	struct dt_ia second;
	struct dt_ep a, b;

	assert_non_null(ia->attr.ia_address_ptr);
	memcpy(&copy, ia->attr.ia_address_ptr, address_length(ia->attr.ia_address_ptr));
	dt_ia_open(&second);
	dt_listen(ia, &listener);
	dt_ep_create(&second, second.pz, NULL, &a);
	dt_ep_create(ia, ia->pz, NULL, &b);
	dt_ok(dat_ep_connect(a.ep, (DAT_SOCK_ADDR *)&copy, listener.qual, DAT_TIMEOUT_INFINITE, 0,
			     NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	dt_ok(dat_cr_accept(dt_request(&listener), b.ep, 0, NULL));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ep_free(&a);
	dt_ep_free(&b);
	dt_unlisten(&listener);
	dt_ia_close(&second);
	assert_memory_equal(&copy, ia->attr.ia_address_ptr,
			    address_length(ia->attr.ia_address_ptr));
}

/* --- attributes against behaviour --- */

/* IA-QUERY-43 EP-CONNECT-27 */
static void ep_connect__each_listed_quality_of_service__success(void **state)
{
	static const DAT_QOS qualities[] = {DAT_QOS_BEST_EFFORT, DAT_QOS_HIGH_THROUGHPUT,
					    DAT_QOS_LOW_LATENCY, DAT_QOS_ECONOMY, DAT_QOS_PREMIUM};
	struct dt_ia *ia = *state;
	struct dt_listener listener;

	dt_listen(ia, &listener);
	for (size_t i = 0; i < COUNT_OF(qualities); i++) {
		const bool listed = (qualities[i] & ia->provider.dat_qos_supported) == qualities[i];
		struct dt_ep a, b;

		dt_ep_create(ia, ia->pz, NULL, &a);
		dt_ep_create(ia, ia->pz, NULL, &b);
		const DAT_RETURN ret = dat_ep_connect(a.ep, ia->attr.ia_address_ptr, listener.qual,
						      DAT_TIMEOUT_INFINITE, 0, NULL, qualities[i],
						      DAT_CONNECT_DEFAULT_FLAG);

		if (listed) {
			dt_ok(ret);
			dt_ok(dat_cr_accept(dt_request(&listener), b.ep, 0, NULL));
			dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		} else {
			dt_fails(ret, DAT_MODEL_NOT_SUPPORTED);
		}
		dt_ep_free(&a);
		dt_ep_free(&b);
	}
	dt_unlisten(&listener);
}

/* IA-QUERY-44 */
static void ep_post_send__each_listed_completion_flag__works(void **state)
{
	static const DAT_COMPLETION_FLAGS flags[] = {
		DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG};
	struct dt_pair pair;
	DAT_EP_ATTR attr;

	dt_ep_attr(*state, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	dt_pair_open_with(&pair, &attr, NULL);
	assert_int_equal(pair.ia.provider.completion_flags_supported, 0x0f);
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		dt_ok(dat_ep_post_recv(pair.b.ep, 0, NULL, dt_cookie(i), 0));
		dt_ok(dat_ep_post_send(pair.a.ep, 0, NULL, dt_cookie(i), flags[i]));
		dt_expect_dto(pair.b.recv, pair.b.ep, i, DAT_DTO_SUCCESS, 0);
		if (flags[i] == DAT_COMPLETION_SUPPRESS_FLAG)
			dt_stays_empty(pair.a.request);
		else
			assert_true(
				dt_event_poll(pair.a.request)
					.event_data.dto_completion_event_data.user_cookie.as_64 ==
				i);
	}
	dt_pair_close(&pair);
}

/* IA-QUERY-46 CONN-GEN-01 CONN-GEN-02 */
static void ep_connect__most_private_data__arrives_both_ways(void **state)
{
	struct dt_ia *ia = *state;
	const DAT_COUNT size = ia->provider.max_private_data_size;
	unsigned char *data = dt_mem_alloc((size_t)size);
	struct dt_listener listener;
	struct dt_ep a, b;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	assert_true(size >= 64);
	dt_listen(ia, &listener);
	dt_ep_create(ia, ia->pz, NULL, &a);
	dt_ep_create(ia, ia->pz, NULL, &b);
	dt_fill(data, (size_t)size, 46);
	dt_ok(dat_ep_connect(a.ep, ia->attr.ia_address_ptr, listener.qual, DAT_TIMEOUT_INFINITE,
			     size, data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	cr = dt_request(&listener);
	dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	assert_int_equal(param.private_data_size, size);
	dt_check_pattern(param.private_data, (size_t)size, 46);
	dt_fill(data, (size_t)size, 47);
	dt_ok(dat_cr_accept(cr, b.ep, size, data));
	const DAT_EVENT event = dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);

	assert_int_equal(event.event_data.connect_event_data.private_data_size, size);
	dt_check_pattern(event.event_data.connect_event_data.private_data, (size_t)size, 47);
	dt_ep_free(&a);
	dt_ep_free(&b);
	dt_unlisten(&listener);
	dt_mem_free(data, (size_t)size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_ia_test(ia_query__address__connects_and_stays),
		dt_ia_test(ep_connect__each_listed_quality_of_service__success),
		dt_ia_test(ep_post_send__each_listed_completion_flag__works),
		dt_ia_test(ep_connect__most_private_data__arrives_both_ways),
	};

	return cmocka_run_group_tests_name("ia attr", tests, NULL, NULL);
}
