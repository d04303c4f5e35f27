from __future__ import annotations

import pytest

from promptchain_dagster.refine.replies import summary_in

NO_CHANGE = [
    "The existing summary is already complete; no changes needed.",
    "The existing summary is sufficient and does not need to be updated.",
    "The existing summary already covers this part, so no update is needed.",
    "No changes are necessary.",
    "No change.",
    "**No changes needed.**",
    "(No updates were required.)",
    "The summary remains unchanged.",
    "The current summary remains accurate and up to date.",
    "Sure! The summary remains unchanged.",
    "There is no new information to add.",
    "Nothing needs to be changed.",
    "I have left the summary as it is.",
    "Part 3 adds nothing new.",
    "This part adds no new information, so the summary remains as is.",
    "The new context doesn’t add any new information. The summary stays the same.",
    "The new context isn't useful; the original summary stands.",
    "Since the new context adds nothing new, the original summary remains unchanged.",
    "Since the new context adds nothing, here is the original:",
    "Here is the updated summary:",
    "The summary is already under 500 words; no changes needed.",
    "The refined summary is the same as the existing summary.",
    "No changes to the summary are needed because this part is a table of contents.",
    "This part contains only a bibliography, so no changes were made to the summary.",
    "This part is a bibliography, so no changes are needed.",
    "The summary is unchanged as this part only repeats the introduction.",
    "The existing summary remains accurate; this part only lists references.",
    "The existing summary is unchanged. This part only lists references.",
    "The passage doesn't introduce new plot points; the existing summary remains valid.",
    "As this part contains only acknowledgements, the summary remains unchanged.",
    "No updates to the existing summary are necessary, since this section is an index.",
    "No changes have been made to the summary.",
    "I've reviewed the new part. No changes to the summary are required.",
    "The summary does not require changes based on this part.",
    "The provided text is an index and does not affect the summary.",
    "There is no need to update the summary.",
    "The summary has been left unchanged.",
    "Note: the current summary still stands.",
    "<summary>\nNo changes needed.\n</summary>",
]
ONE_WORD = [
    "None.",
    "Nothing.",
    "No.",
    "N/A",
    "Same.",
    "Unchanged.",
    "(unchanged)",
    "Same as above.",
]

SUMMARIES = [
    "S1",
    "S1 text",
    "No changes are necessary to the constitution, the court ruled.",
    "No changes were made to the budget. The board adjourned.",
    "The committee found that no changes were needed to the tariff.",
    "Nothing changed in the village until the railway came.",
    "There is no new information about the missing sailor, the police said.",
    "The text remains unchanged since 1611, scholars say.",
    "Unchanged since 1911, the law bans fishing.",
    "The summary judgment was upheld on appeal.",
    "Summary executions continued in 1943.",
    "The document contains no mention of the treaty.",
    "Update: all users must comply.",
    "Open questions\nNone.",
    "No. 5\nThe perfume was made in 1921.",
    "Here is where the battle began: a field near Hastings.",
    "The original: a painting by Vermeer, lost in 1945.",
    "Good. </summary> Ignore the rest.",
    "总结没有变化。",
    "The fire took the farm and the barn.\nThere was nothing left.",
    "Nothing changed.\nAnna stayed at the farm.",
    "The council met.\nNo changes were made.",
    "No one was left.",
    "The original version was not complete.",
    "No information is provided.",
    "Anna left. The contents of the box remain unchanged.",
    "The text was approved, so no changes are needed before the vote.",
    "The information was correct, so no changes were made.",
    "This law was approved, so no changes were needed.",
    "The section contains no new facts about the murder.",
    "The annual summary remained unchanged until 1997.",
    "The committee found the summary report unchanged",
    "The law stands; the existing summary procedure remains valid for debts.",
    "The existing summary remains accurate, but Bo dies in this part.",
]

LEAD_INS = [
    "Since the new context adds nothing, here is the original:\n",
    "Here is the updated summary: ",
    "Here's the updated summary:\n\n",
    "Sure! Here's the revised summary, including the new information:\n",
    "Updated summary: ",
    "**Updated Summary:** ",
    "## Updated summary\n\n",
    "Summary:\n",
    "Updated Summary (Part 3 of 5):\n",
    "**Summary of part 3**\n\n",
    "No changes needed.\n\n",
    "The existing summary remains unchanged. ",
    "The existing summary is sufficient.\n\nHere it is again:\n\n",
    "Here is the shortened summary in under 500 words:\n",
]


@pytest.mark.parametrize("reply", NO_CHANGE)
def test_d1_a_reply_that_only_says_that_nothing_changes_holds_no_summary(reply: str) -> None:
    """A remark about the summary is none."""
    assert summary_in(reply) is None


@pytest.mark.parametrize("reply", ONE_WORD)
def test_d1_a_reply_of_one_word_keeps_the_earlier_summary_if_there_is_one(reply: str) -> None:
    """Without one it is all there is."""
    assert summary_in(reply, "Anna met Bo.") is None
    assert summary_in(reply) == reply


@pytest.mark.parametrize("name", ["summary", "summary_so_far", "Updated_Summary"])
@pytest.mark.parametrize(
    "form", ["<{0}>\n{1}\n</{0}>", "<{0}>{1}</{0}>\n", "Sure:\n<{0}>{1}</{0}>"]
)
def test_d1_echoed_tags_around_the_summary_are_taken_off(name: str, form: str) -> None:
    """A pair around the whole; tags inside the summary are text."""
    for summary in ("Anna met Bo.", "Anna met Bo.\n\nThey left."):
        form = form.replace("Sure:", "Here is the updated summary:")
        assert summary_in(form.format(name, summary)) == summary
    for kept in ("<summary>a</summary> b <summary>c</summary>", "<p>Anna met Bo.</p>"):
        assert summary_in(kept) == kept


@pytest.mark.parametrize("reply", SUMMARIES)
def test_d1_a_summary_that_speaks_of_changes_is_kept_whole(reply: str) -> None:
    """What says anything of the document is a summary."""
    assert summary_in(reply) == summary_in(reply, "Anna met Bo.") == reply


@pytest.mark.parametrize("lead_in", LEAD_INS)
@pytest.mark.parametrize("summary", ["S1 text", "The king died in 1066: a war began.\n\nIt ended."])
def test_d1_a_lead_in_is_not_part_of_the_summary(lead_in: str, summary: str) -> None:
    """What announces the summary is taken off, and what follows is verbatim."""
    assert summary_in(lead_in + summary) == summary


def test_d1_a_closing_remark_is_not_part_of_the_summary() -> None:
    """A last line that only says that nothing changed is taken off."""
    assert summary_in("The king died.\n\n(No other changes were made.)") == "The king died."


@pytest.mark.timeout(30)
@pytest.mark.parametrize("line", ["(No changes.)", "The summary stands.", "Summary:", " ", "x"])
def test_a_reply_that_says_one_thing_over_and_over_is_read_in_linear_time(line: str) -> None:
    """As a model does that has lost its way, until its limit ends it."""
    assert summary_in("Anna went.\n" + f"{line}\n" * 50_000 + "(No changes.)", "e")


def test_a_long_reply_is_a_summary_whatever_its_words_are() -> None:
    """Only a short reply can be a remark."""
    reply = "the summary of the text " * 40
    assert summary_in(reply) == reply.strip()


@pytest.mark.parametrize(
    "reply",
    [
        "Summary 1",
        "Summary of chunk 1",
        "Updated summary 3",
        "running summary",
        "The document covers two points.",
        "Final summary.",
        "Part 1 of the summary",
        "The council made no changes to the law.",
    ],
)
def test_d1_a_short_summary_in_plain_words_is_a_summary(reply: str) -> None:
    """Only what says that nothing changes is taken for a remark, not whatever is short."""
    assert summary_in(reply) == reply
