"""Which prompts instruct a language model, and which are speech: a table of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from voiceapi.engine.graph import data_of, objects
from voiceapi.engine.validation.speech_rules import is_instruction

INSTRUCTIONS = [
    "You are Anna, a friendly receptionist at a dental practice.",
    "You are a sales agent for Acme.",
    "You are an AI assistant that books tables",
    "You're {{agent_name | Sam}}, the virtual assistant of {{brand}}.",
    "You work at the restaurant Il Ponte and talk to a guest on the telephone.",
    "You call {{patient_name | the patient}} about the visit on {{visit_date}}. Ask whether the time still works.",
    "You are friendly, brief, and never argue about an answer.",
    "Your task is to find out when the caller has time.",
    "Your goal is to qualify the lead.",
    "Act as a support agent.",
    "Ask how many guests will come.",
    "Ask if the customer has two minutes for three questions.",
    "Ask for a score from zero to ten, then the main reason, then whether we may call again.",
    "Ask the caller for their name and their date of birth.",
    "Ask them why they cancelled.",
    "Ask whether now is good.",
    "Politely ask for the order number.",
    "Greet the caller.",
    "Greet {{first_name}} warmly and introduce yourself.",
    "Greet {{lead.first_name | the prospect}} from {{lead.company}} and ask what made them enquire about {{product}}.",
    "Tell the caller the shop opens at nine and closes at five, then answer simple follow-up questions.",
    "Thank the guest and say goodbye until tonight.",
    "Thank the customer.",
    "Thank them and close politely.",
    "Say that the booking is cancelled, and goodbye.",
    "Say goodbye.",
    "Confirm the visit and say goodbye.",
    "Repeat the new day and say goodbye.",
    "Repeat the day and thank them.",
    "Apologise for the interruption.",
    "Apologize and end the call.",
    "Find out whether {{first_name | the guest}} will come tonight at eight.",
    "Find out seats and budget; multiply seats by unit price with the calculator when asked.",
    "Offer two other days in the same week. Today is {{current_weekday_Europe/London}}.",
    "Agree on a day and reserve it.",
    "Determine the reason of the call.",
    "Collect the caller's name, address and phone number.",
    "Explain that we are closed on Mondays.",
    "If they ask about prices, give them the price list.",
    "When the customer is angry, stay calm.",
    "Keep replies under thirty words.",
    "Speak plainly on behalf of {{brand}}. Never promise refunds.",
    "Never use lists or symbols.",
    "Do not give medical advice. Always confirm the date.",
    "Respond in one short sentence.",
    "# Role\nFriendly host\n# Task\nBook tables",
    "Goal: book an appointment",
    "Context: a dental practice",
    "1. Greet the caller\n2. Ask for the date",
    "- ask for the name\n- ask for the number",
    "Transfer the caller to sales.",
    "End the call.",
    "Help the user with billing.",
    "Use the calculator tool to work out the price.",
    "Answer questions about opening hours. The caller may be in a hurry.",
    "Verify their identity.",
    "Wait for them to answer.",
    "Inform the patient about the new address.",
    "Let them know that somebody will call back.",
    "Remind her of the appointment.",
    "Be polite and concise.",
    "Introduce yourself and the company.",
    "Summarize the order.",
    "Wrap up the call.",
]

SPEECH = [
    "Hello, this is the clinic. Can you come on Thursday?",
    "Can you come on Thursday at ten?",
    "Please say: opening hours, loan, or event.",
    "Please say yes or no.",
    "Say yes or no.",
    "Say one for sales, two for support.",
    "Tell me your name, please.",
    "Tell us what it is about.",
    "Please tell me what happened.",
    "Thank you for calling. Goodbye.",
    "Thanks, that helps us a lot. Goodbye.",
    "Thank you, I have noted that. See you on Thursday. Goodbye.",
    "Welcome to the town library. What is it about: opening hours, a loan, or an event?",
    "Welcome back, {{first_name | there}}!",
    "Greetings from the library.",
    "Wonderful. How many people will come with you?",
    "No problem. The practice will call you back with another day. Goodbye.",
    "We are open from nine to seven, Tuesday to Saturday. Is there anything else?",
    "On Friday at eight, {{author | a guest}} reads from a new book. Is there anything else?",
    "From one to five, where five is best: how happy are you with the repair?",
    "And what matters most to you: price, speed or quality?",
    "That is fine. Thank you for coming to us. Goodbye.",
    "You are welcome. Goodbye.",
    "You are calling outside of our opening hours.",
    "You are next in line, please hold.",
    "You're a valued customer, so this call is free.",
    "You are very kind. Goodbye.",
    "You are speaking with the practice's answering service. What can I do for you?",
    "Your appointment is on Thursday at ten. Is that right?",
    "Your order is on its way.",
    "Ask me anything about our menu.",
    "Ask us for the price list at any time.",
    "If you want to speak to a person, say person.",
    "If you need anything else, just ask.",
    "When you are ready, say go.",
    "Don't worry, I can help with that.",
    "Don't give your PIN to anybody.",
    "Never mind. Shall we find another day?",
    "Always happy to help. What is your order number?",
    "Let me check that. One moment, please.",
    "Let us know if something changes.",
    "Help is on the way.",
    "Keep the receipt, please.",
    "Keep your phone close, we will call you back.",
    "Take care, and goodbye.",
    "Make sure to bring your passport.",
    "Remember to bring your insurance card.",
    "Confirm by saying yes.",
    "Repeat after me: I agree.",
    "Explain your problem in a few words, please.",
    "Do you want to keep, move or cancel your appointment?",
    "May I ask you three short questions about your repair?",
    "I would like to ask you whether you are happy with us.",
    "I'd like to know how many guests will come.",
    "Our goal is that you are happy. Are you?",
    "Use of this line is free. How can I help?",
    "Call us again tomorrow.",
    "Book now, and you get a discount. Are you interested?",
    "Offers end on Friday. Shall I book one for you?",
    "Goodbye.",
    "Apologies for the wait. What is your name?",
    "The person you called isn't available.",
    "Everybody in the team thanks you. Goodbye.",
    "Always remember: your health comes first. Can you come?",
    "Wait a moment, please.",
    "Check your mail for the link. Anything else?",
    "{{greeting}} How are you today?",
    "Hi {{first_name}}, are you free on Monday?",
    "Guten Tag, hier ist die Praxis. Können Sie am Donnerstag kommen?",
    "",
]


@pytest.mark.parametrize("prompt", INSTRUCTIONS)
def test_an_instruction(prompt: str) -> None:
    assert is_instruction(prompt)


@pytest.mark.parametrize("prompt", SPEECH)
def test_speech(prompt: str) -> None:
    assert not is_instruction(prompt)


@pytest.mark.parametrize("name", ["appointment", "menu", "survey"])
def test_the_scripted_texts_of_examples_are_speech(name: str) -> None:
    path = Path(__file__).parents[3] / "examples" / f"{name}.json"
    definition = json.loads(path.read_text())["workflow_definition"]
    spoken = [node for node in objects(definition, "nodes") if "scripted_text" in data_of(node)]
    assert len(spoken) > 3
    assert [node["id"] for node in spoken if is_instruction(data_of(node)["scripted_text"])] == []


def test_the_prompts_of_definitions_for_a_model_are_instructions(samples: dict[str, Any]) -> None:
    """Nearly all: two words alone may be anything."""
    speech = [
        data_of(node)["prompt"]
        for sample in samples["valid"]
        for node in objects(sample.get("definition", sample), "nodes")
        if node["type"] in ("startCall", "agentNode", "endCall") and not is_instruction(data_of(node)["prompt"])
    ]
    assert speech == []


@pytest.mark.parametrize("text", ["{{" * 20_000, "ask " * 20_000, "x" * 100_000, "- " * 50_000, "a and the " * 9_000])
def test_a_long_prompt_takes_no_time(text: str) -> None:
    is_instruction(text)
