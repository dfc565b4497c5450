// SPDX-License-Identifier: BSD-2-Clause
/* Scenes that are played with a system call that fails, once for each call. */
#ifndef TESTS_SOFT_SHM_FAULTS_SCENE_H
#define TESTS_SOFT_SHM_FAULTS_SCENE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../lib/descriptors.h"
#include "faults_stage.h"

/* --- nothing stays behind --- */

struct scene {
	void (*prepare)(void);
	DAT_RETURN (*action)(void);
	void (*afterwards)(bool is_done); /* afterwards, without faults: what must still work */
	enum fault_thread thread;
};

struct fault {
	const char *call;
	int error;
};

/* Plays the scene with the nth such call failing. False: there were fewer calls. */
static inline bool play(const struct scene *scene, const struct fault *fault, int nth)
{
	unsigned descriptors = count_descriptors();
	int live = fault_live();
	bool has_failed;
	DAT_RETURN ret;

	scene->prepare();
	fault_arm(fault->call, nth, fault->error, scene->thread);
	ret = scene->action();
	if (scene->thread == FAULT_OTHERS)
		scene->afterwards(ret == DAT_SUCCESS);
	has_failed = fault_disarm();
	/* a port in use is a qualifier in use */
	if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES &&
	    !(fault->error == EADDRINUSE && DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE))
		fail_msg("%s number %d failed: 0x%x", fault->call, nth, ret);
	if (ret != DAT_SUCCESS)
		assert_true(has_failed);
	if (scene->thread == FAULT_CALLER)
		scene->afterwards(ret == DAT_SUCCESS);
	stage_close();
	if (fault_live() != live || count_descriptors() != descriptors)
		fail_msg("%s number %d: %d allocations and %d descriptors were left", fault->call,
			 nth, fault_live() - live, (int)(count_descriptors() - descriptors));
	return has_failed;
}

/* The same, for calls that the service thread makes at any time. */
static inline void play_some(const struct scene *scene, const struct fault *faults, size_t count,
			     int most)
{
	for (size_t i = 0; i < count; i++)
		for (int nth = 1; nth <= most; nth++)
			play(scene, &faults[i], nth);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- bytes --- */

static inline DAT_RETURN move_bytes(void)
{
	for (int i = 0; i < 4; i++) { /* the region is mapped after some uses */
		rdma_once(true);
		rdma_once(false);
	}
	return DAT_SUCCESS;
}

/*
 * Allocates what is created once and stays: the arena, the bitmap of descriptors, thread-local
 * memory.
 */
static inline int warm_up(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "faulty",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};

	(void)state;
	dat_provider_init(&info, "127.0.0.1 transport=shm");
	stage_connected();
	move_bytes();
	send_once();
	stage_close();
	return 0;
}

#endif
