// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the tests of memory windows; see the header. */
#include "bind_util.h"

/* --- windows --- */

DAT_RMR_HANDLE rmr_create(struct rig *rig)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;

	dt_ok(dat_rmr_create(rig->ia.pz, &rmr));
	assert_ptr_not_equal(rmr, DAT_HANDLE_NULL);
	return rmr;
}

DAT_RMR_COOKIE rmr_cookie(uint64_t value)
{
	return (DAT_RMR_COOKIE){.as_64 = value};
}

DAT_RMR_CONTEXT bind_post(struct dt_ep *ep, DAT_RMR_HANDLE rmr, DAT_LMR_TRIPLET range,
			  DAT_MEM_PRIV_FLAGS priv, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_CONTEXT context = 0;

	dt_ok(dat_rmr_bind(rmr, &range, priv, ep->ep, rmr_cookie(cookie), flags, &context));
	return context;
}

void unbind_post(struct dt_ep *ep, DAT_RMR_HANDLE rmr, uint64_t cookie)
{
	const DAT_LMR_TRIPLET nothing = {.lmr_context = 0xdeadbeef, .virtual_address = 13};

	dt_ok(dat_rmr_bind(rmr, &nothing, DAT_MEM_PRIV_NONE_FLAG, ep->ep, rmr_cookie(cookie),
			   DAT_COMPLETION_DEFAULT_FLAG, NULL));
}

void bind_check_event(const DAT_EVENT *event, DAT_RMR_HANDLE rmr, uint64_t cookie,
		      DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data =
		&event->event_data.rmr_completion_event_data;

	assert_int_equal(event->event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	assert_ptr_equal(data->rmr_handle, rmr);
	assert_true(data->user_cookie.as_64 == cookie);
	assert_int_equal(data->status, status);
}

void expect_bind(struct dt_ep *ep, DAT_RMR_HANDLE rmr, uint64_t cookie,
		 DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_EVENT event = dt_event(ep->request);

	bind_check_event(&event, rmr, cookie, status);
}

DAT_RMR_CONTEXT bind_now(struct dt_ep *ep, DAT_RMR_HANDLE rmr, DAT_LMR_TRIPLET range,
			 DAT_MEM_PRIV_FLAGS priv)
{
	const DAT_RMR_CONTEXT context =
		bind_post(ep, rmr, range, priv, 0xB1, DAT_COMPLETION_DEFAULT_FLAG);

	expect_bind(ep, rmr, 0xB1, DAT_DTO_SUCCESS);
	return context;
}

void unbind_now(struct dt_ep *ep, DAT_RMR_HANDLE rmr)
{
	unbind_post(ep, rmr, 0xB0);
	expect_bind(ep, rmr, 0xB0, DAT_DTO_SUCCESS);
}

DAT_RMR_PARAM rmr_query(DAT_RMR_HANDLE rmr)
{
	DAT_RMR_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	return param;
}

void rmr_check_bound(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *range, DAT_MEM_PRIV_FLAGS priv,
		     DAT_RMR_CONTEXT context)
{
	const DAT_RMR_PARAM param = rmr_query(rmr);

	assert_int_equal(param.lmr_triplet.lmr_context, range->lmr_context);
	assert_true(param.lmr_triplet.virtual_address == range->virtual_address);
	assert_true(param.lmr_triplet.segment_length == range->segment_length);
	assert_int_equal(param.mem_priv, priv);
	assert_int_equal(param.rmr_context, context);
}

void rmr_check_unbound(DAT_RMR_HANDLE rmr)
{
	DAT_RMR_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_fails_with(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	dt_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_MEM_PRIV | DAT_RMR_FIELD_RMR_CONTEXT, &param));
	assert_int_equal(param.mem_priv, DAT_MEM_PRIV_NONE_FLAG);
	assert_int_equal(param.rmr_context, 0);
}

/* --- holding the queue of an endpoint --- */

void hold_queue(struct rig *rig)
{
	post_send(&rig->b, dt_seg(&rig->y, 0, 8), 0x801D, DAT_COMPLETION_DEFAULT_FLAG);
}

void release_queue(struct rig *rig)
{
	post_recv(&rig->a, dt_seg(&rig->x, RIG_LEN - 8, 8), 0x5EED);
	expect_received(&rig->a, 0x5EED, 8);
	expect_sent(&rig->b, 0x801D, 8);
}

/* --- the peer --- */

DAT_RMR_TRIPLET y_seg(struct rig *rig, DAT_RMR_CONTEXT context, size_t offset, size_t len)
{
	DAT_RMR_TRIPLET seg = dt_rseg(&rig->y, offset, len);

	seg.rmr_context = context;
	return seg;
}

static unsigned char *y_at(DAT_RMR_TRIPLET remote)
{
	return (unsigned char *)(uintptr_t)remote.target_address;
}

/* a reads there: success, and the bytes arrive. */
static void peer_reads(struct rig *rig, DAT_RMR_TRIPLET remote)
{
	const size_t len = remote.segment_length;

	dt_fill(y_at(remote), len, 77);
	memset(rig->x.p, 0, len);
	post_read(&rig->a, dt_seg(&rig->x, 0, len), remote, 0xDA, DAT_COMPLETION_DEFAULT_FLAG);
	expect_sent(&rig->a, 0xDA, len);
	dt_check_pattern(rig->x.p, len, 77);
	memset(y_at(remote), RIG_FILL, len);
}

void peer_writes(struct rig *rig, DAT_RMR_TRIPLET remote)
{
	const size_t len = remote.segment_length;

	dt_fill(rig->x.p, len, 78);
	post_write(&rig->a, dt_seg(&rig->x, 0, len), remote, 0xDB, DAT_COMPLETION_DEFAULT_FLAG);
	expect_sent(&rig->a, 0xDB, len);
	dt_check_pattern(y_at(remote), len, 78);
	memset(y_at(remote), RIG_FILL, len);
}

void rig_relink(struct rig *rig)
{
	dt_ok(dat_ep_reset(rig->a.ep));
	dt_ok(dat_ep_reset(rig->b.ep));
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
}

/* a tries: a remote access error that moves no byte and breaks the connection, which is made anew.
 */
static void peer_refused(struct rig *rig, enum dto_kind kind, DAT_RMR_TRIPLET remote)
{
	const size_t len = remote.segment_length;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, len);

	memset(rig->x.p, 0x3c, len);
	memset(rig->y.p, RIG_FILL, RIG_LEN);
	dt_ok(dto_post(kind, rig->a.ep, 1, &seg, 0xDC, &remote, DAT_COMPLETION_DEFAULT_FLAG));
	expect_request(&rig->a, 0xDC, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_broken(rig);
	dt_check_bytes(rig->x.p, len, 0x3c);
	dt_check_bytes(rig->y.p, RIG_LEN, RIG_FILL);
	rig_relink(rig);
}

void peer_check(struct rig *rig, DAT_RMR_TRIPLET remote, bool may_read, bool may_write)
{
	if (may_read)
		peer_reads(rig, remote);
	else
		peer_refused(rig, DTO_READ, remote);
	if (may_write)
		peer_writes(rig, remote);
	else
		peer_refused(rig, DTO_WRITE, remote);
}

void peer_locked_out(struct rig *rig, DAT_RMR_CONTEXT context)
{
	peer_check(rig, y_seg(rig, context, 0, 64), false, false);
}
