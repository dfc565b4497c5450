// SPDX-License-Identifier: BSD-2-Clause
/* Requests between post and completion. All state is guarded by the lock of the objects. */
#include "check/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/limits.h"
#include "check/object.h"
#include "check/report.h"
#include "check/trace.h"
#include "shared/names.h"

#define CHUNK 1024u
#define CHUNKS 4096u
/* How many outstanding requests a new one is compared with. */
#define COMPARED 128u
/* The shortest Receive whose buffer is compared: a message mostly fills a shorter one. */
#define SAMPLED_MIN 64u
/* Buffers of freed SRQs whose completions may be in an EVD. The oldest are forgotten. */
#define SRQ_ORPHANS_MAX 65536

__thread const void *check_traced_from;
bool check_is_traced;

static struct check_request *chunks[CHUNKS];
static uint32_t used; /* requests that were ever used */
static struct check_request *free_list;
static unsigned binds; /* of all queues */

/* ---- the table ---- */

static struct check_request *take_locked(void)
{
	struct check_request *request = free_list;

	if (request) {
		free_list = request->next;
		return request;
	}
	if (used == CHUNK * CHUNKS)
		return NULL;
	if (!chunks[used / CHUNK])
		chunks[used / CHUNK] = calloc(CHUNK, sizeof(*request));
	if (!chunks[used / CHUNK])
		return NULL;
	request = &chunks[used / CHUNK][used % CHUNK];
	request->index = used++;
	return request;
}

static struct check_request *lookup_locked(DAT_DTO_COOKIE cookie)
{
	uint32_t index = (uint32_t)cookie.as_64;
	struct check_request *request;

	if (index >= used)
		return NULL;
	request = &chunks[index / CHUNK][index % CHUNK];
	return request->queue && request->generation == cookie.as_64 >> 32 ? request : NULL;
}

static void append_locked(struct check_requests *queue, struct check_request *request)
{
	request->queue = queue;
	request->next = NULL;
	request->previous = queue->last;
	if (queue->last)
		queue->last->next = request;
	else
		queue->first = request;
	queue->last = request;
	queue->count++;
	queue->suppressed += request->is_suppressed;
	queue->reads += request->kind == CHECK_READ;
	binds += request->kind == CHECK_BIND;
}

static void unlink_locked(struct check_request *request)
{
	struct check_requests *queue = request->queue;

	*(request->previous ? &request->previous->next : &queue->first) = request->next;
	*(request->next ? &request->next->previous : &queue->last) = request->previous;
	queue->count--;
	queue->suppressed -= request->is_suppressed;
	queue->reads -= request->kind == CHECK_READ;
	binds -= request->kind == CHECK_BIND;
	request->queue = NULL;
}

/* The number that counts a bind of a window. */
static unsigned *binds_of(const struct check_request *bind)
{
	struct check_rmr *rmr = &bind->rmr->life->rmr;

	return bind->is_suppressed ? &rmr->silent_binds : &rmr->binds;
}

static void end_locked(struct check_request *request)
{
	if (request->evd && !request->is_suppressed && !request->is_orphan && request->evd->life)
		request->evd->life->evd.expected--;
	if (request->rmr && !request->is_orphan && request->rmr->life)
		--*binds_of(request);
	unlink_locked(request);
	request->generation++;
	request->next = free_list;
	free_list = request;
}

void check_requests_drop_locked(struct check_requests *queue)
{
	while (queue->first)
		end_locked(queue->first);
}

/* The completions of its buffers stay in the EVDs, whichever those are. */
void check_srq_orphan_locked(struct check_object *srq)
{
	struct check_ia *ia = &srq->ia->life->ia;

	while (srq->life->srq.receives.first) {
		struct check_request *request = srq->life->srq.receives.first;

		unlink_locked(request);
		request->is_orphan = true;
		append_locked(&ia->srq_orphans, request);
		if (ia->srq_orphans.count > SRQ_ORPHANS_MAX)
			end_locked(ia->srq_orphans.first);
	}
}

/* An event may still come, if the EVD holds one. Without an EVD none comes. */
void check_requests_orphan_locked(struct check_object *ep)
{
	struct check_requests *queues[] = {&ep->life->ep.requests, &ep->life->ep.receives};

	for (unsigned i = 0; i < 2; i++)
		while (queues[i]->first) {
			struct check_request *request = queues[i]->first;
			struct check_object *evd = request->evd;

			if (!evd || evd->is_dead) {
				end_locked(request);
				continue;
			}
			if (!request->is_suppressed)
				evd->life->evd.expected--;
			if (request->rmr)
				--*binds_of(request);
			unlink_locked(request);
			request->is_orphan = true;
			request->orphaned = ++evd->life->evd.orphaned;
			append_locked(&evd->life->evd.orphans, request);
		}
}

void check_orphans_drop_locked(struct check_requests *queue, uint64_t until)
{
	while (queue->first && queue->first->orphaned <= until)
		end_locked(queue->first);
}

const struct check_request *check_requests_use_locked(const struct check_requests *queue,
						      DAT_LMR_CONTEXT key, bool is_suppressed)
{
	for (const struct check_request *request = queue->first; request; request = request->next)
		for (unsigned i = 0;
		     i < request->segment_count && request->is_suppressed == is_suppressed; i++)
			if (request->segments[i].segment_length &&
			    request->segments[i].lmr_context == key)
				return request;
	return NULL;
}

struct check_object *check_early_window_locked(const struct check_object *ep,
					       const struct check_request *request)
{
	const struct check_object *other = ep->ia->life->ia.objects[CHECK_POSTERS];
	const struct check_request *bind;

	for (; other; other = other->next) {
		if (other->type != DAT_HANDLE_TYPE_EP || other == ep)
			continue;
		for (bind = other->life->ep.requests.first; bind; bind = bind->next)
			if (bind->kind == CHECK_BIND && bind->remote.rmr_context &&
			    check_has_key(request->segments, request->segment_count,
					  bind->remote.rmr_context))
				return bind->rmr;
	}
	return NULL;
}

/* ---- posting ---- */

/* What the tests of a new request have found; reported when the lock is released. */
struct findings {
	uint64_t empty_ns; /* how long there was no Receive */
	bool is_overlap, is_cookie_twice, is_after_read, is_target_read, is_overflow;
	bool is_all_suppressed;
	struct check_object *evd;
	struct check_object *window; /* whose key is sent too early */
};

static struct check_requests *queue_of(struct check_object *owner, enum check_kind kind)
{
	if (owner->type == DAT_HANDLE_TYPE_SRQ)
		return &owner->life->srq.receives;
	return kind == CHECK_RECV ? &owner->life->ep.receives : &owner->life->ep.requests;
}

/* How long the endpoint or SRQ had no Receive, which it gets now. */
static uint64_t end_empty_locked(struct check_object *owner)
{
	bool is_ep = owner->type == DAT_HANDLE_TYPE_EP;
	uint64_t *empty = is_ep ? &owner->life->ep.empty_ns : &owner->life->srq.empty_ns;
	uint64_t since = *empty;

	*empty = 0;
	return since && !(is_ep && owner->life->ep.has_ended) ? check_now_ns() - since : 0;
}

/* Do the targets of two RDMA operations share bytes? */
static bool targets_overlap(const DAT_RMR_TRIPLET *a, const DAT_RMR_TRIPLET *b)
{
	return a->rmr_context == b->rmr_context &&
	       a->target_address < b->target_address + b->segment_length &&
	       b->target_address < a->target_address + a->segment_length;
}

/* A source that an RDMA Read still fills is not compared: the Read changes it before it is sent. */
static void compare_locked(const struct check_requests *queue, struct check_request *request,
			   bool is_fenced, struct findings *findings)
{
	const struct check_request *other = queue->last;
	bool is_source = request->kind == CHECK_SEND || request->kind == CHECK_WRITE;

	for (unsigned i = 0; other && i < COMPARED; other = other->previous, i++) {
		if (other->cookie.as_64 == request->cookie.as_64)
			findings->is_cookie_twice = true;
		if (request->kind == CHECK_WRITE && !is_fenced && other->kind == CHECK_READ &&
		    targets_overlap(&request->remote, &other->remote))
			findings->is_target_read = true;
		if (!(request->kind == CHECK_RECV || (is_source && other->kind == CHECK_READ)) ||
		    !check_segments_overlap(request->segments, request->segment_count,
					    other->segments, other->segment_count))
			continue;
		if (is_source)
			request->image.is_known = false;
		findings->is_overlap |= request->kind == CHECK_RECV;
		findings->is_after_read |= is_source && !is_fenced;
	}
}

static void note_locked(struct check_object *owner, const struct check_post *post,
			struct check_request *request, struct findings *findings)
{
	struct check_requests *queue = queue_of(owner, post->kind);
	bool is_recv = post->kind == CHECK_RECV, is_ep = owner->type == DAT_HANDLE_TYPE_EP;

	request->kind = (uint8_t)post->kind;
	request->cookie = post->cookie;
	request->is_suppressed = !is_recv && (post->flags & DAT_COMPLETION_SUPPRESS_FLAG);
	request->ep = is_ep ? owner : NULL;
	request->srq = is_ep ? NULL : owner;
	request->evd = !is_ep	 ? NULL
		       : is_recv ? owner->life->ep.recv_evd
				 : owner->life->ep.request_evd;
	request->is_orphan = false;
	request->rmr = post->rmr;
	request->posted_at = post->posted_at;
	request->remote = post->remote ? *post->remote : (DAT_RMR_TRIPLET){0};
	/* a comparison is needed only for Receives, behind Reads, or if cookies are compared */
	if (is_recv || queue->reads || check_rule_is_on(CHECK_COOKIE_TWICE))
		compare_locked(queue, request, post->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG,
			       findings);
	append_locked(queue, request);
	if (is_recv)
		findings->empty_ns = end_empty_locked(owner);
	if (request->rmr)
		++*binds_of(request);
	if (binds && (post->kind == CHECK_SEND || post->kind == CHECK_WRITE) &&
	    check_rule_is_on(CHECK_RMR_EARLY))
		findings->window = check_early_window_locked(owner, request);
	if (request->evd && !request->is_suppressed) {
		struct check_evd *evd = &request->evd->life->evd;

		findings->evd = request->evd;
		findings->is_overflow = ++evd->expected > evd->length && evd->length > 0;
	}
	if (is_ep && !is_recv && request->is_suppressed)
		findings->is_all_suppressed = queue->suppressed == queue->count &&
					      queue->count > owner->life->ep.max_requests;
}

static void report_findings(struct check_object *owner, const struct check_post *post,
			    const struct findings *found)
{
	if (found->is_overlap && check_is_news(CHECK_RECV_OVERLAP, owner))
		check_report(post->call, CHECK_RECV_OVERLAP, owner,
			     "the buffer shares bytes with another posted Receive of %s",
			     check_name(owner).text);
	if (found->empty_ns)
		check_report(post->call, CHECK_RECV_NONE, owner,
			     "%s had no Receive for %llu us; a message that comes then waits, and "
			     "breaks the connection on iWARP devices",
			     check_name(owner).text, (unsigned long long)(found->empty_ns / 1000));
	if (found->is_cookie_twice && check_is_news(CHECK_COOKIE_TWICE, owner))
		check_report(post->call, CHECK_COOKIE_TWICE, owner,
			     "an outstanding request of %s has the cookie 0x%llx already",
			     check_name(owner).text, (unsigned long long)post->cookie.as_64);
	if (found->is_after_read)
		check_report(
			post->call, CHECK_WRITE_AFTER_READ, owner,
			"its buffer is the target of an outstanding RDMA Read of %s, and it has no "
			"DAT_COMPLETION_BARRIER_FENCE_FLAG",
			check_name(owner).text);
	if (found->is_target_read)
		check_report(
			post->call, CHECK_WRITE_AFTER_READ, owner,
			"an outstanding RDMA Read of %s reads bytes that it writes, and it has no "
			"DAT_COMPLETION_BARRIER_FENCE_FLAG",
			check_name(owner).text);
	if (found->window)
		check_report(
			post->call, CHECK_RMR_EARLY, found->window,
			"%s sends the key of %s, whose bind was posted to another endpoint and "
			"has not completed, or its completion was not taken",
			check_name(owner).text, check_name(found->window).text);
	if (found->is_overflow && check_is_news(CHECK_EVD_OVERFLOW, found->evd))
		check_report(post->call, CHECK_EVD_OVERFLOW, found->evd,
			     "%d events of posted requests are not taken yet, and %s holds %d",
			     found->evd->life->evd.expected, check_name(found->evd).text,
			     found->evd->life->evd.length);
	if (found->is_all_suppressed)
		check_report(post->call, CHECK_ALL_SUPPRESSED, owner,
			     "%s has had %d requests in turn without an event; many providers free "
			     "their slots only at the next event",
			     check_name(owner).text, owner->life->ep.max_requests);
}

/* Copies the segments, if they are inside their regions. */
static bool keep_segments_locked(struct check_object *ia, const struct check_post *post,
				 struct check_request *request)
{
	request->segment_count = 0;
	if (post->segment_count < 0 || post->segment_count > (DAT_COUNT)CHECK_SEGMENTS ||
	    (post->segment_count && !post->segments))
		return false;
	for (DAT_COUNT i = 0; i < post->segment_count; i++) {
		if (!check_segment_is_inside_locked(ia, &post->segments[i]))
			return false;
		request->segments[i] = post->segments[i];
	}
	request->segment_count = (uint8_t)post->segment_count;
	return true;
}

DAT_DTO_COOKIE check_request_begin(struct check_object *owner, const struct check_post *post)
{
	struct findings findings = {0};
	struct check_request *request;
	DAT_DTO_COOKIE cookie = post->cookie;
	bool is_inside;

	check_lock();
	request = owner->is_dead ? NULL : take_locked();
	if (!request) {
		check_unlock();
		return cookie;
	}
	is_inside = keep_segments_locked(owner->ia, post, request);
	request->image.is_known = false;
	request->image.length = check_length(request->segments, request->segment_count);
	if (is_inside && post->kind == CHECK_RECV && request->image.length >= SAMPLED_MIN &&
	    check_rule_is_on(CHECK_RECV_WRITTEN))
		check_image_sample(&request->image, request->segments, request->segment_count);
	else if (is_inside && (post->kind == CHECK_SEND || post->kind == CHECK_WRITE) &&
		 check_rule_is_on(CHECK_SEND_CHANGED))
		check_image_sum(&request->image, request->segments, request->segment_count);
	note_locked(owner, post, request, &findings);
	cookie.as_64 = (uint64_t)request->generation << 32 | request->index;
	check_unlock();
	report_findings(owner, post, &findings);
	check_limit(post->call, owner, CHECK_LIMIT_SEGMENTS, "num_segments", post->segment_count);
	return cookie;
}

/* Why a post was refused, as far as its segments tell. */
static void explain_segment(struct check_object *owner, const struct check_post *post,
			    const DAT_LMR_TRIPLET *segment, DAT_COUNT number)
{
	struct check_object *region;
	unsigned long long from, length;
	bool is_dead;

	if (!segment->segment_length)
		return;
	check_lock();
	region = check_region_locked(owner->ia, segment->lmr_context);
	is_dead = region && region->is_dead;
	from = region ? region->life->lmr.address : 0;
	length = region ? region->life->lmr.length : 0;
	check_unlock();
	if (!region)
		check_report(post->call, CHECK_LMR_KEY, owner,
			     "segment %d: no region has the key 0x%x", number,
			     segment->lmr_context);
	else if (is_dead)
		check_report(post->call, CHECK_LMR_KEY, region,
			     "segment %d: the key 0x%x is that of %s, which is freed", number,
			     segment->lmr_context, check_name(region).text);
	else if (segment->virtual_address < from ||
		 segment->virtual_address + segment->segment_length > from + length)
		check_report(post->call, CHECK_IOV_OUTSIDE, region,
			     "segment %d, 0x%llx to 0x%llx, is not inside %s, 0x%llx to 0x%llx",
			     number, (unsigned long long)segment->virtual_address,
			     (unsigned long long)segment->virtual_address + segment->segment_length,
			     check_name(region).text, from, from + length);
}

/* Does the request write into its buffer? */
static bool is_filling(const struct check_request *request)
{
	return request->kind == CHECK_RECV || request->kind == CHECK_READ;
}

/* A request has ended well with that length, or has failed: 0. */
static void fill_locked(struct check_object *ia, const struct check_request *request,
			uint64_t length)
{
	if (is_filling(request))
		check_segments_taken_locked(ia, request->segments, request->segment_count, length);
}

/* All suppressed requests in front of the queue's last `max_requests` must have ended. */
static void trim_locked(struct check_object *owner)
{
	struct check_requests *queue = &owner->life->ep.requests;

	while (queue->count > owner->life->ep.max_requests && queue->first->is_suppressed) {
		fill_locked(owner->ia, queue->first, queue->first->image.length);
		end_locked(queue->first);
	}
}

void check_request_posted(struct check_object *owner, const struct check_post *post,
			  DAT_DTO_COOKIE number, DAT_RETURN result)
{
	DAT_RETURN type = DAT_GET_TYPE(result);
	struct check_request *request;

	check_lock();
	request = lookup_locked(number);
	if (request && request->cookie.as_64 != post->cookie.as_64)
		request = NULL;
	/* after the call: a refused one must leave the buffer alone, and the provider may have copied */
	if (request && result != DAT_SUCCESS)
		end_locked(request);
	else if (request && is_filling(request))
		check_segments_posted(request->segments, request->segment_count);
	if (result == DAT_SUCCESS && owner->type == DAT_HANDLE_TYPE_EP && !owner->is_dead) {
		trim_locked(owner);
		if (trace_has_transfers())
			trace_posted_locked(owner, post);
	}
	check_unlock();
	if ((type != DAT_INVALID_PARAMETER && type != DAT_PRIVILEGES_VIOLATION &&
	     type != DAT_PROTECTION_VIOLATION) ||
	    !post->segments)
		return;
	for (DAT_COUNT i = 0; i < post->segment_count && i < 64; i++)
		explain_segment(owner, post, &post->segments[i], i);
}

void check_request_set_key_locked(DAT_RMR_COOKIE number, const struct check_object *rmr,
				  DAT_RMR_CONTEXT key)
{
	struct check_request *request = lookup_locked(number);

	if (request && request->kind == CHECK_BIND && request->rmr == rmr)
		request->remote.rmr_context = key;
}

/* ---- completion ---- */

/* What a completion has shown; reported when the lock is released. */
struct outcome {
	struct check_request request; /* a copy */
	DAT_DTO_COMPLETION_STATUS status;
	uint64_t length;
	bool is_changed, is_written;
	struct check_object *target; /* whose key the peer refused */
};

/*
 * The requests in front of one that has ended have ended, too. Is there one among them whose buffer is
 * not what it was when it was posted?
 */
static bool end_earlier_locked(struct check_request *request, struct check_request *changed_out)
{
	bool is_changed = false;

	while (!request->is_orphan && request->previous && request->previous->is_suppressed) {
		struct check_request *earlier = request->previous;

		if (check_rule_is_on(CHECK_SUPPRESSED_USED) && !is_changed &&
		    !check_image_is_same(&earlier->image, earlier->segments,
					 earlier->segment_count)) {
			*changed_out = *earlier;
			is_changed = true;
		}
		fill_locked(earlier->ep->ia, earlier, earlier->image.length);
		end_locked(earlier);
	}
	return is_changed;
}

static void look_locked(struct check_object *evd, const struct check_request *request,
			struct outcome *outcome)
{
	outcome->request = *request;
	if (outcome->status == DAT_DTO_SUCCESS && request->kind != CHECK_RECV)
		outcome->is_changed = !check_image_is_same(&request->image, request->segments,
							   request->segment_count);
	else if (outcome->status == DAT_DTO_SUCCESS)
		outcome->is_written = check_image_has_changed_behind(
			&request->image, request->segments, outcome->length);
	else if (outcome->status == DAT_DTO_ERR_REMOTE_ACCESS)
		outcome->target = check_target_locked(evd->ia, &request->remote);
}

/* What is known of the key that a peer refused. */
static void report_refusal(struct check_call *call, struct check_object *ep,
			   const struct outcome *outcome)
{
	const DAT_RMR_TRIPLET *remote = &outcome->request.remote;
	struct check_object *target = outcome->target;
	char why[96] = "";

	if (target && target->is_dead)
		snprintf(why, sizeof(why), ", which is that of %s of this process, which is freed",
			 check_name(target).text);
	else if (target && target->type == DAT_HANDLE_TYPE_RMR &&
		 target->life->rmr.keys[0] != remote->rmr_context)
		snprintf(why, sizeof(why), ", which %s of this process had before its last bind",
			 check_name(target).text);
	else if (target)
		snprintf(why, sizeof(why), ", which is that of %s of this process",
			 check_name(target).text);
	check_report(call, CHECK_REMOTE_ACCESS, target ? target : ep,
		     "the peer refused %llu bytes at 0x%llx with the key 0x%x%s",
		     (unsigned long long)remote->segment_length,
		     (unsigned long long)remote->target_address, remote->rmr_context, why);
}

static void report_outcome(struct check_call *call, struct check_object *evd,
			   const struct outcome *outcome)
{
	const struct check_request *request = &outcome->request;
	struct check_object *ep = request->ep ? request->ep : evd;
	const char *what = request->kind == CHECK_SEND ? "Send" : "RDMA Write";

	call->posted_at = request->posted_at;
	if (outcome->is_changed)
		check_report(
			call, CHECK_SEND_CHANGED, ep,
			"the buffer of a %s of %s (%llu bytes at 0x%llx) is not what it was when "
			"it was posted",
			what, check_name(ep).text, (unsigned long long)request->image.length,
			(unsigned long long)request->segments[0].virtual_address);
	if (outcome->is_written)
		check_report(call, CHECK_RECV_WRITTEN, ep,
			     "bytes behind the %llu of the message changed in the buffer at 0x%llx",
			     (unsigned long long)outcome->length,
			     (unsigned long long)request->segments[0].virtual_address);
	if (request->kind == CHECK_RECV && outcome->status == DAT_DTO_ERR_LOCAL_LENGTH)
		check_report(call, CHECK_RECV_SHORT, ep,
			     "a message did not fit into a Receive of %llu bytes",
			     (unsigned long long)request->image.length);
	if (outcome->status == DAT_DTO_ERR_REMOTE_ACCESS)
		report_refusal(call, ep, outcome);
}

/* A buffer of an SRQ belongs to the endpoint that has received the message. */
static void trace_transfer_locked(const struct check_request *request,
				  const DAT_DTO_COMPLETION_EVENT_DATA *data)
{
	struct check_object *ep = request->ep ? request->ep : check_outer_locked(data->ep_handle);

	if (ep && !ep->is_dead)
		trace_completed_locked(ep, request, data->status, data->transfered_length);
}

/* The Receive that has completed was the last one. */
static void note_empty_locked(const struct check_request *request, DAT_DTO_COMPLETION_STATUS status)
{
	if (!check_rule_is_on(CHECK_RECV_NONE) || request->kind != CHECK_RECV ||
	    request->is_orphan || status != DAT_DTO_SUCCESS)
		return;
	if (request->ep && !request->ep->life->ep.receives.count)
		request->ep->life->ep.empty_ns = check_now_ns();
	if (request->srq && !request->srq->life->srq.receives.count)
		request->srq->life->srq.empty_ns = check_now_ns();
}

static void report_early(struct check_call *call, const struct check_request *early)
{
	call->posted_at = early->posted_at;
	check_report(
		call, CHECK_SUPPRESSED_USED, early->ep,
		"%llu bytes at 0x%llx changed: a request of %s sends them that gives no event, and "
		"no later one had completed",
		(unsigned long long)early->image.length,
		(unsigned long long)early->segments[0].virtual_address, check_name(early->ep).text);
}

static void dto_event(struct check_call *call, struct check_object *evd,
		      DAT_DTO_COMPLETION_EVENT_DATA *data)
{
	struct outcome outcome = {.status = data->status, .length = data->transfered_length};
	struct check_request *request, early;
	bool is_early_changed = false;

	check_lock();
	request = lookup_locked(data->user_cookie);
	if (request) {
		look_locked(evd, request, &outcome);
		if (trace_has_transfers())
			trace_transfer_locked(request, data);
		is_early_changed = end_earlier_locked(request, &early);
		fill_locked(evd->ia, request,
			    data->status == DAT_DTO_SUCCESS ? data->transfered_length : 0);
		end_locked(request);
		note_empty_locked(&outcome.request, data->status);
		data->user_cookie = outcome.request.cookie;
	}
	check_unlock();
	data->ep_handle = request && outcome.request.ep ? (DAT_EP_HANDLE)outcome.request.ep
							: check_outer(data->ep_handle);
	if (request)
		report_outcome(call, evd, &outcome);
	if (is_early_changed)
		report_early(call, &early);
}

static void bind_event(struct check_call *call, DAT_RMR_BIND_COMPLETION_EVENT_DATA *data)
{
	struct check_request *request, early;
	bool is_early_changed = false;

	data->rmr_handle = check_outer(data->rmr_handle);
	check_lock();
	request = lookup_locked(data->user_cookie);
	if (request) {
		data->user_cookie = request->cookie;
		is_early_changed = end_earlier_locked(request, &early);
		end_locked(request);
	}
	check_unlock();
	if (is_early_changed)
		report_early(call, &early);
}

void check_request_event(struct check_call *call, struct check_object *evd, DAT_EVENT *event)
{
	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		dto_event(call, evd, &event->event_data.dto_completion_event_data);
	else if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		bind_event(call, &event->event_data.rmr_completion_event_data);
}
