import pytest

from voiceapi.llm.understanding.wishes import asks_again, offers_person, wants_no_calls, wants_person


def test_a_request_among_other_words() -> None:
    assert wants_person("Yes. Well, can I talk to somebody there?")
    assert not wants_person("Yes. I talked to my wife.")


def test_an_edge_for_a_person() -> None:
    assert offers_person("Operator", "")
    assert offers_person("Desk", "They want to speak to a person.")
    assert not offers_person("Yes", "The person wants to come.")


# One line a language, or more.
NO_CALLS = """
Ich möchte bitte nicht mehr angerufen werden / I am on the national do not call list / lose my number please
stop calling me / don't call me again / take me off your list / Please take me off your list. /
I don't want any more calls / never call me again / Do not call this number again! / stop calling /
can you stop calling me please / put me on your do not call list / remove my number / unsubscribe /
No, stop calling me. / I'm not interested, don't call me anymore / lose my number /
I said don't call me / I do not want you to call me again / leave me alone / quit calling here /
please remove me from your list / opt out / I don't want to be called again /
would you please not call me again
no me llame más / dejen de llamarme / No me vuelvan a llamar, por favor. / quíteme de su lista /
no quiero recibir más llamadas
ne m'appelez plus / Arrêtez de m'appeler ! / retirez-moi de votre liste /
je ne veux plus être appelé / ne me rappelez plus jamais
Rufen Sie mich nicht mehr an. / rufen Sie nie wieder an / Hören Sie auf, mich anzurufen! /
streichen Sie mich bitte von Ihrer Liste / ich möchte nicht mehr angerufen werden /
keine Anrufe mehr, bitte
non mi chiami più / Smettetela di chiamarmi / toglietemi dalla vostra lista /
non voglio più essere chiamata
não me ligue mais / parem de me ligar / tire meu número da sua lista / nunca mais me liguem
bel me niet meer / stop met bellen / haal me van de lijst / ik wil niet meer gebeld worden /
bel mij nooit meer op
proszę więcej do mnie nie dzwonić / nie dzwońcie do mnie więcej / przestańcie do mnie dzwonić /
proszę usunąć mój numer z listy
ring mig inte igen / sluta ringa mig / ta bort mig från er lista / ring aldrig mer
मुझे फिर से कॉल मत करना / मुझे फ़ोन करना बंद करो / मेरा नंबर लिस्ट से हटा दो / दोबारा फोन न करें
もう電話しないでください / 二度と電話をかけてこないで / リストから外してください / 電話をかけるのをやめてください
不要再给我打电话了 / 别再打来了 / 把我从名单上删除 / 请不要打电话给我 / 别打电话给我
"""
OTHER_WISHES = """
Can you remove my number from the booking and put in my wife's? /
Please remove my phone number, it's wrong, the new one is 555 / Did you delete this number? /
I lose my number all the time / Am I on the do not call list? / I want to opt out of the newsletter /
I want to opt out of paperless billing / Please take me off the waiting list /
take us off the list for Tuesday, we need Wednesday / don't call this number, call my mobile /
please don't call my wife, call me / don't call back, I'll wait on the line /
They said you would never call back / Why do you never call back? / You never call me back /
I never call back / Why did you stop calling me? / Stop ringing / Ich kann keine Anrufe mehr empfangen /
Mein Handy empfängt keine Anrufe mehr / Es kommen keine Anrufe mehr durch /
Ich möchte keine Anrufe verpassen / ich möchte keine Anrufe vor neun Uhr / Warum rufen Sie mich nicht an? /
Er ruft nicht mehr an / Ich rufe nicht mehr an / Streichen Sie mich von der Warteliste /
Streichen Sie mich aus der Gästeliste /
Nehmen Sie meine Nummer aus der Liste und schreiben Sie die neue auf / perché non mi chiamate più? /
quíteme de la lista de espera
don't call me Ann / I'll call you / call me tomorrow / don't call me tomorrow /
don't call me before nine / please don't call me at work / I didn't say stop calling me /
don't stop calling me / you can call me Bob / can you call me back / take me off speaker /
don't call me sir / stop calling me darling / I don't want to call / don't call me, I'll call you /
no need to call me back / no thanks / I can't take calls now / take me off the hook / I want to stop /
call me any time / do not call me this afternoon / never mind / I never got the call /
why did you call me / don't call me today
no me llame Ana / llámeme mañana / no puedo llamar ahora
ne m'appelez pas Anne / appelez-moi demain / ne m'appelez pas maintenant
Rufen Sie mich morgen an / rufen Sie mich nicht vor neun an / nennen Sie mich nicht Anna /
ich rufe Sie an / rufen Sie mich heute nicht an
non mi chiami Anna / mi chiami domani
não me chame de Ana / me ligue amanhã
bel me morgen / bel me niet voor negen / noem me niet Anna
proszę zadzwonić jutro / nie dzwońcie teraz
ring mig i morgon / ring mig inte nu
मुझे कल फोन करना / मुझे अभी कॉल मत करो
明日電話してください / 今は電話しないでください
明天给我打电话 / 现在不要给我打电话 / 别叫我小王
"""


def phrases(text: str) -> list[str]:
    return [each.strip() for line in text.splitlines() for each in line.split("/") if each.strip()]


@pytest.mark.parametrize("said", phrases(NO_CALLS))
def test_a_caller_who_wants_no_more_calls(said: str) -> None:
    assert wants_no_calls(said)


@pytest.mark.parametrize("said", phrases(OTHER_WISHES))
def test_words_that_only_look_like_it(said: str) -> None:
    assert not wants_no_calls(said)


def test_who_asks_for_the_question_again() -> None:
    again = """
        who is this? / pardon? / Hello? Who is this? / Who's calling? / sorry, what? / Could you say that again please
        what did you say / I didn't catch that / wer ist da? / wie bitte? / ¿quién es? / もしもし / कौन है / 你是谁？
    """
    assert [said for said in phrases(again) if not asks_again(said)] == []
    other = "who is coming / yes / hello yes I am here / I will repeat the year / what a day / sorry no / what time"
    assert [said for said in phrases(other) if asks_again(said)] == []
    assert not asks_again("hello " * 1000)
