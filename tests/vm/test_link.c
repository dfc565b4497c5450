// SPDX-License-Identifier: BSD-2-Clause
/*
 * The interface below the device goes down under a connection with work posted. Requests fail with
 * the status of a lost transport, the rest is flushed, and each side gets one BROKEN event. When
 * the interface is up again, a new connection works. For the virtual machine: it needs root, and
 * takes the machine off the network. Not for iWARP, where TCP waits for the interface.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dto_util.h"

static void link_set(const char *state)
{
	char command[64];

	snprintf(command, sizeof(command), "ip link set dev eth0 %s", state);
	assert_int_equal(system(command), 0);
}

/* A Receive was posted before. Posts three Sends, which fail when there is no route any more. */
static void check_side(struct rig *rig, struct dt_ep *ep)
{
	for (uint64_t i = 0; i < 3; i++)
		post_send(ep, dt_seg(&rig->x, 64 * i, 64), 10 + i, DAT_COMPLETION_DEFAULT_FLAG);
	expect_request(ep, 10, DAT_DTO_ERR_TRANSPORT);
	expect_request(ep, 11, DAT_DTO_ERR_FLUSHED);
	expect_request(ep, 12, DAT_DTO_ERR_FLUSHED);
	expect_recv_flushed(ep, 20);
	expect_recv_flushed(ep, 21);
	expect_ended(ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* DTO-60 EP-STATE-44 EP-STATE-52 EP-STATE-53 CONN-EVT-39 */
static void link__goes_down__broken_once_and_anew(void **state)
{
	struct rig *rig = *state;

	rig_works(rig);
	for (uint64_t i = 0; i < 2; i++) {
		post_recv(&rig->a, dt_seg(&rig->y, 64 * i, 64), 20 + i);
		post_recv(&rig->b, dt_seg(&rig->y, 128 + 64 * i, 64), 20 + i);
	}
	link_set("down");
	check_side(rig, &rig->a);
	check_side(rig, &rig->b);
	dt_check_bytes(rig->y.p, 256, RIG_FILL);
	dt_no_event(rig->ia.async);
	link_set("up");
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
	rig_link(rig);
	rig_works(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(link__goes_down__broken_once_and_anew),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
