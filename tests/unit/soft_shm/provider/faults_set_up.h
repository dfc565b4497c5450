// SPDX-License-Identifier: BSD-2-Clause
/* Scenes of a set-up in which each system call fails in turn, over any transport. */
#ifndef TESTS_SOFT_SHM_FAULTS_SET_UP_H
#define TESTS_SOFT_SHM_FAULTS_SET_UP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults_scene.h"
#include "faults_stage.h"

static inline void play_all(const struct scene *scene, const struct fault *faults, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int nth = 1;

		while (play(scene, &faults[i], nth))
			assert_true(++nth < NTH_MAX);
	}
}

/* --- a service point --- */

static inline DAT_RETURN listen_any(void)
{
	return core_psp_create_any(stage.ia, &stage.qual, stage.evd, DAT_PSP_CONSUMER_FLAG,
				   &stage.psp);
}

/* The EVD is not in use by a service point that was not created; a connection works afterwards. */
static inline void connects_later(bool is_done)
{
	if (!is_done)
		ok(listen_any());
	stage_endpoints();
	ok(connect_a());
	assert_true(attempt_ends());
}

static const struct scene scene_listen = {stage_open, listen_any, connects_later, FAULT_CALLER};

/* --- the two ends --- */

static inline void attempt_works_later(bool is_done)
{
	DAT_EVENT event;
	DAT_EP_STATE state;

	/* reported by the call or by the event: not by both, and not by neither */
	if (is_done) {
		(void)attempt_ends();
		return;
	}
	ok(core_ep_get_status(stage.a.ep, &state, NULL, NULL));
	assert_int_equal(state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(core_evd_dequeue(stage.evd, &event), DAT_QUEUE_EMPTY);
	ok(connect_a());
	assert_true(attempt_ends());
}

static const struct scene scene_connect = {stage_listen, connect_a, attempt_works_later,
					   FAULT_CALLER};

static inline void accept_works_later(bool is_done)
{
	DAT_EP_STATE state;

	if (is_done) {
		(void)attempt_ends();
		return;
	}
	ok(core_ep_get_status(stage.b.ep, &state, NULL, NULL));
	assert_int_equal(state, DAT_EP_STATE_UNCONNECTED);
	ok(accept_b());
	assert_true(attempt_ends());
}

static const struct scene scene_accept = {stage_request, accept_b, accept_works_later,
					  FAULT_CALLER};

/* The request does not belong to an endpoint whose accept has failed, and stays when that is freed.
 */
static inline void other_accepts_later(bool is_done)
{
	if (!is_done) {
		ok(core_ep_free(stage.b.ep));
		ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL,
				  &stage.b.ep));
	}
	accept_works_later(is_done);
}

static const struct scene scene_accept_other = {stage_request, accept_b, other_accepts_later,
						FAULT_CALLER};

/* --- the service thread --- */

static inline void attempt_ends_somehow(bool is_done)
{
	assert_true(is_done);
	(void)attempt_ends();
}

static const struct scene scene_service = {stage_listen, connect_a, attempt_ends_somehow,
					   FAULT_OTHERS};

#endif
