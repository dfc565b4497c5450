// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stand-in's memory windows, of type 1 (fake.h). As with real devices, the library counts a
 * window's key when a bind is posted and the device when it is carried out. After a bind that was
 * dropped the two differ, and the next one fails.
 */
#include "fake_inner.h"

#include <errno.h>
#include <stdlib.h>

static struct fake_mw *mws;
static uint32_t last_window;
static unsigned binds;
static enum ibv_wc_status next_unbind;

unsigned fake_binds(void)
{
	return fake_read_count(&binds);
}

unsigned fake_mws(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&fake_lock);
	for (const struct fake_mw *mw = mws; mw; mw = mw->next)
		count++;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

unsigned fake_bound(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&fake_lock);
	for (const struct fake_mw *mw = mws; mw; mw = mw->next)
		count += mw->length > 0;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void fake_unbind_status(enum ibv_wc_status status)
{
	pthread_mutex_lock(&fake_lock);
	next_unbind = status;
	pthread_mutex_unlock(&fake_lock);
}

/* --- the device --- */

static void mw_release(struct fake_mw *mw)
{
	if (mw->mr)
		mw->mr->windows--;
	mw->mr = NULL;
	mw->length = 0;
}

bool fake_mw_is_in(const struct ibv_pd *pd)
{
	const struct fake_mw *mw = mws;

	while (mw && mw->mw.pd != pd)
		mw = mw->next;
	return mw;
}

bool fake_mw_is_good(uint32_t rkey, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		     int access)
{
	const struct fake_mw *mw = mws;

	while (mw && mw->rkey != rkey)
		mw = mw->next;
	return mw && mw->length && mw->mw.pd == pd && (mw->access & access) == access &&
	       addr >= mw->addr && len <= mw->length && addr - mw->addr <= mw->length - len;
}

/* Is the bind valid? */
static bool is_allowed(const struct fake_bind *bind, const struct fake_mr *mr)
{
	return mr && mr->mr.pd == bind->mw->mw.pd && (mr->access & IBV_ACCESS_MW_BIND) &&
	       (!(bind->access & IBV_ACCESS_REMOTE_WRITE) ||
		(mr->access & IBV_ACCESS_LOCAL_WRITE)) &&
	       bind->addr >= (uintptr_t)mr->mr.addr && bind->length <= mr->mr.length &&
	       bind->addr - (uintptr_t)mr->mr.addr <= mr->mr.length - bind->length;
}

static enum ibv_wc_status bind_carry_out(const struct fake_bind *bind, const struct ibv_pd *pd)
{
	struct fake_mr *mr = bind->length ? fake_mr_by_key(bind->lkey) : NULL;
	struct fake_mw *mw = bind->mw;
	enum ibv_wc_status wanted = next_unbind;

	if (!bind->length)
		next_unbind = IBV_WC_SUCCESS;
	if (!bind->length && wanted != IBV_WC_SUCCESS)
		return wanted;
	if (mw->mw.pd != pd || mw->rkey != bind->old_rkey ||
	    (bind->length && !is_allowed(bind, mr)))
		return IBV_WC_MW_BIND_ERR;
	mw_release(mw);
	mw->rkey = bind->new_rkey;
	if (!bind->length)
		return IBV_WC_SUCCESS;
	mw->mr = mr;
	mr->windows++;
	mw->addr = bind->addr;
	mw->length = bind->length;
	mw->access = bind->access;
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status fake_mw_status(struct fake_bind *bind, const struct ibv_pd *pd)
{
	if (!bind->is_carried_out)
		bind->status = bind_carry_out(bind, pd);
	bind->is_carried_out = true;
	return bind->status;
}

/* --- the library --- */

static struct ibv_mw *ops_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fake_mw *mw = NULL;

	pthread_mutex_lock(&fake_lock);
	if (type != IBV_MW_TYPE_1)
		errno = EINVAL;
	else if (!fake_fails("ibv_alloc_mw", ENOMEM))
		mw = calloc(1, sizeof(*mw));
	if (mw) {
		last_window++;
		mw->rkey = 0x40000000u | last_window << 8 | (last_window * 37 & 0xff);
		mw->mw = (struct ibv_mw){
			.context = pd->context, .pd = pd, .rkey = mw->rkey, .type = type};
		mw->next = mws;
		mws = mw;
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return mw ? &mw->mw : NULL;
}

static int ops_dealloc_mw(struct ibv_mw *ibv_mw)
{
	struct fake_mw *mw = (struct fake_mw *)ibv_mw;
	struct fake_mw **link = &mws;

	pthread_mutex_lock(&fake_lock);
	if (fake_bind_is_queued(mw))
		abort(); /* the bind would fail, and the connection with it */
	mw_release(mw);
	while (*link != mw)
		link = &(*link)->next;
	*link = mw->next;
	fake_count(-1);
	pthread_mutex_unlock(&fake_lock);
	free(mw);
	return 0;
}

static int ops_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *asked)
{
	const struct ibv_mw_bind_info *info = &asked->bind_info;
	struct fake_bind *bind;
	int rc;

	if (info->length > UINT64_C(1) << 31) /* as mlx5 */
		return EOPNOTSUPP;
	pthread_mutex_lock(&fake_lock);
	if (fake_fails(info->length ? "ibv_bind_mw" : "ibv_bind_mw of nothing", ENOMEM)) {
		pthread_mutex_unlock(&fake_lock);
		return ENOMEM;
	}
	bind = calloc(1, sizeof(*bind));
	bind->mw = (struct fake_mw *)mw;
	bind->old_rkey = mw->rkey;
	bind->new_rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
	bind->lkey = info->mr->lkey; /* rxe's library reads it even if the window is unbound */
	bind->addr = info->addr;
	bind->length = info->length;
	bind->access = (int)info->mw_access_flags;
	binds++;
	mw->rkey = bind->new_rkey;
	rc = fake_post_bind(qp, asked, bind);
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

void fake_mw_ops(struct ibv_context_ops *ops)
{
	ops->alloc_mw = ops_alloc_mw;
	ops->dealloc_mw = ops_dealloc_mw;
	ops->bind_mw = ops_bind_mw;
}
