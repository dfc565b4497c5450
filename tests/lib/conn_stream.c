// SPDX-License-Identifier: BSD-2-Clause
/* Transfers over one endpoint with several always posted; see the header. */
#include "conn_stream.h"

#define CONN_STREAM_DEPTH 8

static void conn_stream_post(struct conn_stream *stream)
{
	DAT_LMR_TRIPLET seg = dt_seg(stream->local, 0, stream->local->len);
	const DAT_DTO_COOKIE cookie = dt_cookie(stream->posted++);
	const DAT_EP_HANDLE ep = stream->ep->ep;

	if (stream->kind == CONN_STREAM_SEND)
		dt_ok(dat_ep_post_send(ep, 1, &seg, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	else if (stream->kind == CONN_STREAM_WRITE)
		dt_ok(dat_ep_post_rdma_write(ep, 1, &seg, cookie, &stream->remote,
					     DAT_COMPLETION_DEFAULT_FLAG));
	else
		dt_ok(dat_ep_post_rdma_read(ep, 1, &seg, cookie, &stream->remote,
					    DAT_COMPLETION_DEFAULT_FLAG));
}

void conn_stream_reap(struct conn_stream *stream)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(stream->ep->request, &event) == DAT_SUCCESS) {
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_true(dto->user_cookie.as_64 == stream->completed);
		stream->completed++;
		if (dto->status != DAT_DTO_SUCCESS)
			stream->has_failed = true;
		else
			assert_false(stream->has_failed);
	}
}

void conn_stream_step(struct conn_stream *stream)
{
	while (!stream->has_failed && stream->posted - stream->completed < CONN_STREAM_DEPTH)
		conn_stream_post(stream);
	conn_stream_reap(stream);
}
