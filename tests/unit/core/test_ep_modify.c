// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_modify, with calls of other threads in the middle of it: before it attaches an EVD, and
 * before it replaces the queues. Both steps are replaced at link time (--wrap, see meson.build).
 */
#include "core/event/evd.h"
#include "mock.h"

static struct mock_ia ia;
static DAT_EP_HANDLE ep;
static DAT_EVD_HANDLE before, after;   /* the EVDs of its Receives */
static DAT_EP_ATTR ep_attr;	       /* for try_ep */
static DAT_RETURN (*other_call)(void); /* what other threads call in the middle */
static DAT_RETURN results[8];	       /* of these calls; checked later: a lock is held here */
static unsigned int result_count;
static bool lacks_memory; /* the queues of `ep` cannot be replaced */

static void interrupt_call(void)
{
	DAT_RETURN (*call)(void) = other_call;

	if (!call)
		return;
	other_call = NULL; /* is not interrupted itself */
	results[result_count++ % 8] = call();
	other_call = call;
}

enum core_evd_fit __real_core_evd_attach_for(DAT_EVD_HANDLE handle, struct core_ia *owner,
					     DAT_EVD_FLAGS need, enum core_stream stream,
					     const uint32_t leaving[CORE_STREAM_KINDS],
					     struct core_evd **evd_out);
enum core_evd_fit __wrap_core_evd_attach_for(DAT_EVD_HANDLE handle, struct core_ia *owner,
					     DAT_EVD_FLAGS need, enum core_stream stream,
					     const uint32_t leaving[CORE_STREAM_KINDS],
					     struct core_evd **evd_out);
enum core_evd_fit __wrap_core_evd_attach_for(DAT_EVD_HANDLE handle, struct core_ia *owner,
					     DAT_EVD_FLAGS need, enum core_stream stream,
					     const uint32_t leaving[CORE_STREAM_KINDS],
					     struct core_evd **evd_out)
{
	interrupt_call();
	return __real_core_evd_attach_for(handle, owner, need, stream, leaving, evd_out);
}

DAT_RETURN __real_core_ep_size_queues(struct core_ep *object, const DAT_EP_ATTR *attr);
DAT_RETURN __wrap_core_ep_size_queues(struct core_ep *object, const DAT_EP_ATTR *attr);
DAT_RETURN __wrap_core_ep_size_queues(struct core_ep *object, const DAT_EP_ATTR *attr)
{
	interrupt_call();
	if (lacks_memory && object->cell == ep)
		return core_no_resources(DAT_RESOURCE_MEMORY);
	return __real_core_ep_size_queues(object, attr);
}

static DAT_EVD_HANDLE new_evd(void)
{
	DAT_EVD_HANDLE evd;

	assert_int_equal(core_evd_create(ia.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
			 DAT_SUCCESS);
	return evd;
}

static void take_default_attr(void)
{
	const DAT_EP_HANDLE plain = mock_ep(&ia);
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(plain, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(plain), DAT_SUCCESS);
	ep_attr = param.ep_attr;
}

/* Creates an endpoint whose Receives complete on that EVD. */
static DAT_RETURN try_ep(DAT_EVD_HANDLE recv, DAT_COMPLETION_FLAGS flags, DAT_EP_HANDLE *made)
{
	ep_attr.recv_completion_flags = flags;
	return core_ep_create(ia.ia, ia.pz, recv, ia.evd, ia.evd, &ep_attr, made);
}

static int setup(void **state)
{
	(void)state;
	lacks_memory = false;
	result_count = 0;
	mock_open(&ia);
	take_default_attr();
	before = new_evd();
	after = new_evd();
	assert_int_equal(try_ep(before, DAT_COMPLETION_DEFAULT_FLAG, &ep), DAT_SUCCESS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock_close(&ia);
	return 0;
}

/* Also replaces the queues. */
static DAT_RETURN modify(DAT_EVD_HANDLE recv, DAT_COMPLETION_FLAGS flags, DAT_RETURN (*call)(void))
{
	DAT_EP_PARAM param;
	DAT_RETURN ret;

	assert_int_equal(core_ep_query(ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	param.recv_evd_handle = recv;
	param.ep_attr.recv_completion_flags = flags;
	param.ep_attr.max_recv_dtos++;
	other_call = call;
	ret = core_ep_modify(ep,
			     DAT_EP_FIELD_RECV_EVD_HANDLE |
				     DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS |
				     DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
			     &param);
	other_call = NULL;
	return ret;
}

/* The modify was interrupted before it attached each of three EVDs and replaced the queues. */
static void expect_results(DAT_RETURN ret)
{
	assert_int_equal(result_count, 4);
	while (result_count)
		assert_int_equal(results[--result_count], ret);
}

static const DAT_RETURN in_use = DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE;

static DAT_RETURN free_before(void)
{
	return core_evd_free(before);
}

/* EVD-FREE-03 EP-CREATE-76: the EVD is in use until the endpoint uses the other one. */
static void ep_modify__old_evd_freed_meanwhile__in_use(void **state)
{
	(void)state;
	assert_int_equal(modify(after, DAT_COMPLETION_DEFAULT_FLAG, free_before), DAT_SUCCESS);
	expect_results(in_use);
	assert_int_equal(core_evd_free(after), in_use);
	assert_int_equal(core_evd_free(before), DAT_SUCCESS);
}

/* EVD-FREE-03 EP-CREATE-76 EP-MODIFY-03: also if the endpoint keeps the EVD after all. */
static void ep_modify__old_evd_freed_and_modify_fails__in_use(void **state)
{
	(void)state;
	lacks_memory = true;
	assert_int_equal(mock_code(modify(after, DAT_COMPLETION_DEFAULT_FLAG, free_before)),
			 DAT_INSUFFICIENT_RESOURCES);
	expect_results(in_use);
	assert_int_equal(core_evd_free(before), in_use);
	assert_int_equal(core_evd_free(after), DAT_SUCCESS);
}

static const DAT_RETURN conflict = DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG6;

static DAT_RETURN attach_solicited(void)
{
	DAT_EP_HANDLE other;

	return try_ep(before, DAT_COMPLETION_SOLICITED_WAIT_FLAG, &other);
}

/* EP-CREATE-73 EP-CREATE-75 EP-MODIFY-47: the stream that a failed call keeps counts all the time,
 * also if the call was to change the kind of the stream. */
static void ep_modify__conflicting_stream_attached_meanwhile__refused(void **state)
{
	const DAT_COMPLETION_FLAGS solicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	DAT_EP_HANDLE other;

	(void)state;
	lacks_memory = true;
	assert_int_equal(mock_code(modify(after, DAT_COMPLETION_DEFAULT_FLAG, attach_solicited)),
			 DAT_INSUFFICIENT_RESOURCES);
	expect_results(conflict);
	assert_int_equal(mock_code(modify(before, solicited, attach_solicited)),
			 DAT_INSUFFICIENT_RESOURCES);
	expect_results(conflict);
	assert_int_equal(attach_solicited(), conflict);
	assert_int_equal(try_ep(before, DAT_COMPLETION_DEFAULT_FLAG, &other), DAT_SUCCESS);
	assert_int_equal(core_ep_free(other), DAT_SUCCESS);
	/* the kind can be changed when nothing conflicts */
	lacks_memory = false;
	assert_int_equal(modify(before, solicited, NULL), DAT_SUCCESS);
	assert_int_equal(attach_solicited(), DAT_SUCCESS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ep_modify__old_evd_freed_meanwhile__in_use),
		T(ep_modify__old_evd_freed_and_modify_fails__in_use),
		T(ep_modify__conflicting_stream_attached_meanwhile__refused),
	};

	return cmocka_run_group_tests_name("core ep_modify", tests, NULL, NULL);
}
