// SPDX-License-Identifier: BSD-2-Clause
/* Makes and frees one object of each kind, and checks all calls on a handle; see the header. */
#include "world.h"

void world_open(struct world *world)
{
	DAT_SRQ_ATTR srq_attr = {4, 1, DAT_SRQ_LW_DEFAULT};
	const DAT_CONN_QUAL qual = 1ull << 60 | (uint64_t)getpid() << 24;
	static unsigned serial;
	DAT_PZ_HANDLE pz;

	memset(world, 0, sizeof(*world));
	dt_ia_open(&world->ia);
	pz = world->ia.pz;
	dt_buf_create(&world->ia, pz, &world->buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	dt_listen(&world->ia, &world->listener);
	dt_ep_create(&world->ia, pz, NULL, &world->active);
	dt_ep_create(&world->ia, pz, NULL, &world->reserved);
	dt_ok(dat_rsp_create(world->ia.ia, qual | ++serial, world->reserved.ep, world->listener.evd,
			     &world->rsp));
	dt_connect(&world->ia, world->active.ep, world->listener.qual);
	world->cr = dt_request(&world->listener);
	dt_ok(dat_rmr_create(pz, &world->rmr));
	dt_ok(dat_cno_create(world->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &world->cno));
	dt_ok(dat_srq_create(world->ia.ia, pz, &srq_attr, &world->srq));
	const struct world_object objects[WORLD_COUNT] = {
		{DAT_HANDLE_TYPE_IA, world->ia.ia},
		{DAT_HANDLE_TYPE_EP, world->active.ep},
		{DAT_HANDLE_TYPE_EVD, world->active.conn},
		{DAT_HANDLE_TYPE_CR, world->cr},
		{DAT_HANDLE_TYPE_PSP, world->listener.psp},
		{DAT_HANDLE_TYPE_RSP, world->rsp},
		{DAT_HANDLE_TYPE_PZ, pz},
		{DAT_HANDLE_TYPE_LMR, world->buf.lmr},
		{DAT_HANDLE_TYPE_RMR, world->rmr},
		{DAT_HANDLE_TYPE_CNO, world->cno},
		{DAT_HANDLE_TYPE_SRQ, world->srq},
	};

	memcpy(world->object, objects, sizeof(objects));
}

void world_close(struct world *world)
{
	dt_ok(dat_cr_reject(world->cr));
	dt_expect_conn(world->active.conn, world->active.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_rsp_free(world->rsp));
	dt_ok(dat_rmr_free(world->rmr));
	dt_ok(dat_cno_free(world->cno));
	dt_ok(dat_srq_free(world->srq));
	dt_ep_free(&world->active);
	dt_ep_free(&world->reserved);
	dt_unlisten(&world->listener);
	dt_buf_free(&world->buf);
	dt_ia_close(&world->ia);
}

int world_setup(void **state)
{
	static struct world world;

	world_open(&world);
	*state = &world;
	return 0;
}

int world_teardown(void **state)
{
	world_close(*state);
	return 0;
}

/* --- one handle, one call --- */

/* Of a call on an object of that type; no row states one for EVDs, where any will do. */
static DAT_RETURN_SUBTYPE handle_subtype(DAT_HANDLE_TYPE type)
{
	static const DAT_RETURN_SUBTYPE subtypes[] = {
		[DAT_HANDLE_TYPE_IA] = DAT_INVALID_HANDLE_IA,
		[DAT_HANDLE_TYPE_EP] = DAT_INVALID_HANDLE_EP,
		[DAT_HANDLE_TYPE_CR] = DAT_INVALID_HANDLE_CR,
		[DAT_HANDLE_TYPE_PSP] = DAT_INVALID_HANDLE_PSP,
		[DAT_HANDLE_TYPE_RSP] = DAT_INVALID_HANDLE_RSP,
		[DAT_HANDLE_TYPE_PZ] = DAT_INVALID_HANDLE_PZ,
		[DAT_HANDLE_TYPE_LMR] = DAT_INVALID_HANDLE_LMR,
		[DAT_HANDLE_TYPE_RMR] = DAT_INVALID_HANDLE_RMR,
		[DAT_HANDLE_TYPE_CNO] = DAT_INVALID_HANDLE_CNO,
		[DAT_HANDLE_TYPE_SRQ] = DAT_INVALID_HANDLE_SRQ,
	};

	assert_in_range(type, 0, COUNT_OF(subtypes) - 1);
	return subtypes[type];
}

void world_check_refused(const struct world_call *call, DAT_HANDLE handle)
{
	const DAT_RETURN ret = call->fn(handle);

	if (call->type == DAT_HANDLE_TYPE_EVD && DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE &&
	    (ret & DAT_CLASS_ERROR))
		return;
	if (ret == DT_ERROR(DAT_INVALID_HANDLE, handle_subtype(call->type)))
		return;
	print_error("dat_%s(%p) returned %s\n", call->name, handle, dt_strerror(ret));
	fail();
}

void world_check_dead(DAT_HANDLE handle)
{
	DAT_CONTEXT context = {.as_64 = 5};
	DAT_HANDLE_TYPE type;

	for (size_t i = 0; i < WORLD_CALLS; i++)
		world_check_refused(&world_calls[i], handle);
	dt_fails_with(dat_get_handle_type(handle, &type), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_get_consumer_context(handle, &context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_set_consumer_context(handle, context), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
}

void world_check_alive(const struct world *world)
{
	for (size_t i = 0; i < WORLD_COUNT; i++)
		for (size_t j = 0; j < WORLD_CALLS; j++)
			if (world_calls[j].harmless && world_calls[j].type == world->object[i].type)
				dt_check_ok(world_calls[j].fn(world->object[i].handle),
					    world_calls[j].name, __FILE__, __LINE__);
}
