// SPDX-License-Identifier: BSD-2-Clause
/* What a transport says about a connection that is established. */
#include "mock_use.h"

#include <sys/socket.h>

#include "core/conn/ep_conn.h"

#define LIMIT CORE_PRIVATE_MAX /* more than max_private_data_size of the mock */

static DAT_CONNECTION_EVENT_DATA establish(const void *private_data, uint32_t size)
{
	const struct transport_conn_param peer = {.private_data = private_data,
						  .private_data_size = size};
	struct sockaddr_in address = {.sin_family = AF_INET};
	DAT_EVENT event;

	assert_int_equal(core_ep_connect(mock_ep(&ia), (DAT_IA_ADDRESS_PTR)&address, 7,
					 DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
					 DAT_CONNECT_DEFAULT_FLAG),
			 DAT_SUCCESS);
	core_lock_acquire(&mock.ep->cell->lock);
	core_ep_established(mock.ep, &peer);
	core_ep_leave(mock.ep);
	event = mock_event(ia.evd);
	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	return event.event_data.connect_event_data;
}

/* CONN-GEN-11: a transport that has refused too little does not overflow the endpoint's memory. */
static void established__private_data_too_long__none(void **state)
{
	uint8_t data[LIMIT + 1] = "private";
	DAT_CONNECTION_EVENT_DATA seen = establish(data, LIMIT);

	(void)state;
	assert_int_equal(seen.private_data_size, LIMIT);
	assert_memory_equal(seen.private_data, data, LIMIT);
	assert_int_equal(establish(data, LIMIT + 1).private_data_size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(established__private_data_too_long__none, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
