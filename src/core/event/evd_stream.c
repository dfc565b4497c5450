// SPDX-License-Identifier: BSD-2-Clause
/* Counting the streams that feed an EVD, and the asynchronous EVD of an instance. */
#include "core/event/evd.h"

#include <string.h>

#include "core/base/instance.h"
#include "core/base/status.h"

static const uint32_t none_leaving[CORE_STREAM_KINDS];

/* Does the EVD have a stream of that kind, apart from those that leave? */
static bool evd_has_other(const struct core_evd *evd, enum core_stream kind,
			  const uint32_t leaving[CORE_STREAM_KINDS])
{
	assert(evd->users[kind] >= leaving[kind]);
	return evd->users[kind] > leaving[kind];
}

static bool evd_stream_is_compatible(const struct core_evd *evd, enum core_stream stream,
				     const uint32_t leaving[CORE_STREAM_KINDS])
{
	if (stream == CORE_STREAM_SOLICITED)
		return !evd_has_other(evd, CORE_STREAM_PLAIN, leaving) &&
		       !evd_has_other(evd, CORE_STREAM_UNSIGNALLED, leaving);
	return !evd_has_other(evd, CORE_STREAM_SOLICITED, leaving);
}

bool core_evd_suits(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	bool is_good;

	if (!evd)
		return false;
	is_good = evd->ia == ia && (evd->flags & need) == need;
	core_handle_unlock((struct core_handle *)handle);
	return is_good;
}

enum core_evd_fit core_evd_attach(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
				  enum core_stream stream, struct core_evd **evd_out)
{
	return core_evd_attach_for(handle, ia, need, stream, none_leaving, evd_out);
}

enum core_evd_fit core_evd_attach_for(DAT_EVD_HANDLE handle, struct core_ia *ia, DAT_EVD_FLAGS need,
				      enum core_stream stream,
				      const uint32_t leaving[CORE_STREAM_KINDS],
				      struct core_evd **evd_out)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	enum core_evd_fit fit = CORE_EVD_FITS;
	struct core_handle *cell;

	if (!evd)
		return CORE_EVD_UNFIT;
	cell = evd->cell;
	if (evd->ia != ia || (evd->flags & need) != need)
		fit = CORE_EVD_UNFIT;
	else if (!evd_stream_is_compatible(evd, stream, leaving))
		fit = CORE_EVD_CONFLICT;
	else
		evd->users[stream]++;
	core_handle_unlock(cell);
	if (fit == CORE_EVD_FITS)
		*evd_out = evd;
	return fit;
}

void core_evd_reattach(struct core_evd *evd, enum core_stream stream)
{
	core_lock_acquire(&evd->cell->lock);
	evd->users[stream]++;
	core_lock_release(&evd->cell->lock);
}

void core_evd_detach(struct core_evd *evd, enum core_stream stream)
{
	core_lock_acquire(&evd->cell->lock);
	assert(evd->users[stream] > 0);
	evd->users[stream]--;
	core_lock_release(&evd->cell->lock);
}

static const struct core_arg async_evd = CORE_ARG_INIT(ia_openv, 3, asynch_evd_handle);

DAT_RETURN core_evd_borrow(DAT_EVD_HANDLE handle, struct core_ia *ia)
{
	struct core_evd *evd = core_handle_lock(handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	struct core_handle *cell;

	if (!evd)
		return core_bad_handle(&async_evd, DAT_INVALID_HANDLE_EVD_ASYNC, handle);
	cell = evd->cell;
	if (!(evd->flags & DAT_EVD_ASYNC_FLAG) ||
	    strcmp(evd->ia->adapter->info.ia_name, ia->adapter->info.ia_name)) {
		ret = core_bad_handle(&async_evd, DAT_INVALID_HANDLE_EVD_ASYNC, handle);
	} else if (!evd_stream_is_compatible(evd, CORE_STREAM_PLAIN, none_leaving)) {
		ret = core_bad_arg(
			&async_evd,
			"%s receives events that need DAT_COMPLETION_SOLICITED_WAIT_FLAG",
			core_handle_name(cell).text);
	} else {
		evd->users[CORE_STREAM_PLAIN]++;
		ia->async_evd = handle;
		ia->async_ref = core_handle_ref(cell);
	}
	core_handle_unlock(cell);
	return ret;
}

void core_evd_unborrow(struct core_ia *ia)
{
	struct core_evd *evd = core_handle_lock_ref(ia->async_ref, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return;
	evd->users[CORE_STREAM_PLAIN]--;
	core_handle_unlock(evd->cell);
}
