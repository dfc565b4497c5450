// SPDX-License-Identifier: BSD-2-Clause
/*
 * Private data between adapters whose limits differ: the calls allow what a larger adapter allows,
 * the engine receives with the limit of a smaller one.
 */
#include "played_peer.h"
#include "host_stage.h"

#include "core/base/instance.h"
#include "core/base/lock.h"
#include "soft/soft.h"
#include "soft/shm/engine/engine.h"

#define LIMIT 64u

static uint8_t sent[LIMIT + 1];

static int open_small(void **state)
{
	struct core_ia *ia;

	(void)open_stage(state);
	ia = core_handle_lock(stage.ia, DAT_HANDLE_TYPE_IA);
	assert_non_null(ia);
	assert_true(ia->provider_attr.max_private_data_size > (DAT_COUNT)LIMIT);
	soft_adapter_of(ia)->shm->private_max = LIMIT;
	core_handle_unlock(ia->cell);
	memset(sent, 'x', sizeof(sent));
	return 0;
}

static void call_with(unsigned size)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, stage.qual, WAIT_US,
			   (DAT_COUNT)size, sent, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void accept_with(unsigned size)
{
	take_request();
	ok(core_cr_accept(stage.cr, stage.b, (DAT_COUNT)size, sent));
}

/* The ends of the two sides, in either order. */
static void expect_both(DAT_EVENT_NUMBER at_a, DAT_EVENT_NUMBER at_b)
{
	for (unsigned i = 0; i < 2; i++) {
		DAT_EVENT event = next_of(stage.evd);
		DAT_EP_HANDLE ep = event.event_data.connect_event_data.ep_handle;

		assert_int_equal(event.event_number, ep == stage.a ? at_a : at_b);
		assert_int_equal(event.event_data.connect_event_data.private_data_size, 0);
	}
}

/* CONN-GEN-11: one from an adapter without the header is shown over TCP, too */
static void request__longer_than_our_limit__shown_whole(void **state)
{
	DAT_CR_PARAM param;

	(void)state;
	call_with(LIMIT + 1);
	take_request();
	ok(core_cr_query(stage.cr, DAT_CR_FIELD_ALL, &param));
	assert_int_equal(param.private_data_size, LIMIT + 1);
	assert_memory_equal(param.private_data, sent, LIMIT + 1);
}

/* CONN-GEN-11 */
static void accept__longer_than_our_limit__refused_at_both_sides(void **state)
{
	(void)state;
	call_with(0);
	accept_with(LIMIT + 1);
	expect_both(DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
		    DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
}

static void accept__as_long_as_our_limit__arrives(void **state)
{
	(void)state;
	call_with(0);
	accept_with(LIMIT);
	for (unsigned i = 0; i < 2; i++) {
		DAT_CONNECTION_EVENT_DATA data = expect(DAT_CONNECTION_EVENT_ESTABLISHED);

		assert_int_equal(data.private_data_size, data.ep_handle == stage.a ? LIMIT : 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_small, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(request__longer_than_our_limit__shown_whole),
		TEST(accept__longer_than_our_limit__refused_at_both_sides),
		TEST(accept__as_long_as_our_limit__arrives),
	};

	return cmocka_run_group_tests_name("shm private", tests, provide, NULL);
}
