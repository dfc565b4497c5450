// SPDX-License-Identifier: BSD-2-Clause
/* The streams of an endpoint into EVDs (ep_stream.h). */
#include "core/ep/ep_stream.h"

#include <string.h>

static enum core_stream recv_stream(const DAT_EP_ATTR *attr)
{
	if (attr->recv_completion_flags == DAT_COMPLETION_UNSIGNALLED_FLAG)
		return CORE_STREAM_UNSIGNALLED;
	if (attr->recv_completion_flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return CORE_STREAM_SOLICITED;
	return CORE_STREAM_PLAIN;
}

static enum core_stream request_stream(const DAT_EP_ATTR *attr)
{
	return attr->request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG
		       ? CORE_STREAM_UNSIGNALLED
		       : CORE_STREAM_PLAIN;
}

void core_ep_streams_detach(const struct core_ep_streams *streams, const DAT_EP_ATTR *attr)
{
	if (streams->recv)
		core_evd_detach(streams->recv, recv_stream(attr));
	if (streams->request)
		core_evd_detach(streams->request, request_stream(attr));
	if (streams->connect)
		core_evd_detach(streams->connect, CORE_STREAM_PLAIN);
}

/* One stream and the errors for it. */
struct ep_stream {
	DAT_EVD_HANDLE handle;
	DAT_EVD_FLAGS need;
	enum core_stream kind;
	DAT_RETURN_SUBTYPE subtype;
	const struct core_arg *name;
};

/* Counts the streams of the endpoint into that EVD, by kind. */
static void ep_count_streams(const struct core_ep *ep, DAT_EVD_HANDLE evd,
			     uint32_t counts[CORE_STREAM_KINDS])
{
	if (ep->recv_evd && ep->recv_evd->cell == evd)
		counts[recv_stream(&ep->attr)]++;
	if (ep->request_evd && ep->request_evd->cell == evd)
		counts[request_stream(&ep->attr)]++;
	if (ep->connect_evd && ep->connect_evd->cell == evd)
		counts[CORE_STREAM_PLAIN]++;
}

static DAT_RETURN stream_attach(struct core_ia *ia, const struct ep_stream *stream,
				const struct core_arg *attr, const struct core_ep *old,
				struct core_evd **evd_out)
{
	uint32_t leaving[CORE_STREAM_KINDS] = {0};
	enum core_evd_fit fit;

	if (stream->handle == DAT_HANDLE_NULL)
		return DAT_SUCCESS;
	if (old)
		ep_count_streams(old, stream->handle, leaving);
	fit = core_evd_attach_for(stream->handle, ia, stream->need, stream->kind, leaving, evd_out);
	if (fit == CORE_EVD_UNFIT)
		return core_bad_handle(stream->name, stream->subtype, stream->handle);
	if (fit == CORE_EVD_CONFLICT)
		return core_bad_arg(attr,
				    "%s cannot mix completions with and without "
				    "DAT_COMPLETION_SOLICITED_WAIT_FLAG",
				    core_handle_name(stream->handle).text);
	return DAT_SUCCESS;
}

DAT_RETURN core_ep_streams_attach(struct core_ia *ia, const struct core_ep_args *args,
				  const DAT_EP_ATTR *attr, const struct core_ep *old,
				  struct core_ep_streams *streams)
{
	static const struct core_ep_names none;
	const struct core_ep_names *names = args->names ? args->names : &none;
	const struct ep_stream recv = {args->recv_evd, DAT_EVD_DTO_FLAG, recv_stream(attr),
				       DAT_INVALID_HANDLE_EVD_RECV, &names->recv_evd};
	const struct ep_stream request = {args->request_evd, DAT_EVD_DTO_FLAG, request_stream(attr),
					  DAT_INVALID_HANDLE_EVD_REQUEST, &names->request_evd};
	const struct ep_stream connect = {args->connect_evd, DAT_EVD_CONNECTION_FLAG,
					  CORE_STREAM_PLAIN, DAT_INVALID_HANDLE_EVD_CONN,
					  &names->connect_evd};
	DAT_RETURN ret;

	memset(streams, 0, sizeof(*streams));
	ret = stream_attach(ia, &recv, &names->attr, old, &streams->recv);
	if (ret == DAT_SUCCESS)
		ret = stream_attach(ia, &request, &names->attr, old, &streams->request);
	if (ret == DAT_SUCCESS)
		ret = stream_attach(ia, &connect, &names->attr, old, &streams->connect);
	if (ret != DAT_SUCCESS) {
		core_ep_streams_detach(streams, attr);
		memset(streams, 0, sizeof(*streams));
	}
	return ret;
}
