// SPDX-License-Identifier: BSD-2-Clause
/* The end of an endpoint whose peer is in the middle of a copy. */
#include "played_peer.h"
#include "host_stage.h"

#include <stdatomic.h>
#include <time.h>

#define KEY 0x1234u

static struct peer peer;
static bool is_copying;
static bool was_revoked; /* while the thread of the test waited */
static unsigned pauses;	 /* of that thread */

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	if (is_copying && pthread_equal(pthread_self(), stage.thread)) {
		pauses++;
		was_revoked = peer.segment->side[SHM_PASSIVE].revoked;
		atomic_store(&peer.segment->side[SHM_ACTIVE].announce, 0); /* the copy ends */
	}
	return __real_nanosleep(time, left);
}

/* EP-FREE-23: this copy is waited for, and the peer finds that it must not begin another one. */
static void ep_free__peer_copies__waits_for_its_end(void **state)
{
	(void)state;
	peer_is_here(&peer);
	atomic_store(&peer.segment->side[SHM_ACTIVE].announce, KEY);
	is_copying = true;
	ok(core_ep_free(stage.b));
	is_copying = false;
	assert_int_equal(pauses, 1);
	assert_true(was_revoked);
	peer_close(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ep_free__peer_copies__waits_for_its_end, open_stage,
						close_stage),
	};

	return cmocka_run_group_tests_name("shm copying", tests, provide, NULL);
}
