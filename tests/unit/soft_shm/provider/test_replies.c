// SPDX-License-Identifier: BSD-2-Clause
/* A peer that the reply to its request cannot reach. */
#include "host_stage.h"
#include "played_peer.h"

/* CR-ACCEPT-19: the reply could not be sent, and what the peer has sent before changes nothing */
static void accept__peer_takes_no_reply_but_says_ready__fails(void **state)
{
	struct peer peer;

	(void)state;
	peer_dial(&peer);
	peer_ask(&peer);
	peer_word(&peer, SHM_WIRE_READY, 0);
	assert_int_equal(shutdown(peer.fd, SHUT_RD), 0);
	accept_request();
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	peer_close(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(accept__peer_takes_no_reply_but_says_ready__fails,
						open_stage, close_stage),
	};

	return cmocka_run_group_tests_name("shm replies", tests, provide, NULL);
}
